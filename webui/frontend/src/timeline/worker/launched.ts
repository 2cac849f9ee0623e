/** The device's work that an event of a thread launched, wherever the view is. */

import { tilesWithin } from "../layout/levels";
import type { Source } from "./source";
import type { PlacedEvent } from "./underWay";

/** Work that waits longer for the device than these tiles reach is not found. */
const MOST_TILES = 16;

/** In the order of the tiles; `lane` is the thread's, times are ns from the rank's origin. */
export async function findLaunched(source: Source, rank: number, lane: number, start: number, end: number, signal?: AbortSignal): Promise<PlacedEvent[]> {
  const { lanes, levels, span_ns: spanNs } = await source.header(rank);
  const level = levels.length - 1;
  const [first, last] = tilesWithin({ levels, span_ns: spanNs }, level, start, spanNs);
  const found: PlacedEvent[] = [];
  for (let number = first; number < Math.min(last, first + MOST_TILES); number++) {
    const tile = await source.tile(rank, level, number, signal);
    for (let row = number === first ? 0 : tile.carried; row < tile.rows; row++) {
      const launch = tile.launch?.[row] ?? Number.NaN;
      if (launch >= start && launch < end && lanes.track[tile.launchLane![row]!] === lanes.track[lane])
        found.push({ lane: tile.lane[row]!, name: tile.name[row]!, start: tile.start[row]!, duration: tile.duration[row]! });
    }
  }
  return found;
}
