/** The events of a thread that were under way at a time, wherever the view is. */

import { rowsWithin } from "./rows";
import type { Source } from "./source";

export interface PlacedEvent {
  lane: number;
  name: number;
  start: number;
  duration: number;
}

/** Outermost first; `lane` is any of the thread's, `at` ns from the rank's origin. Rejects with a sentence for people. */
export async function findUnderWay(source: Source, rank: number, lane: number, at: number, signal?: AbortSignal): Promise<PlacedEvent[]> {
  const { lanes } = await source.header(rank);
  const found: PlacedEvent[] = [];
  for await (const { tile, row } of rowsWithin(source, rank, at, at + 1, signal)) {
    const its = tile.lane[row]!;
    if (lanes.track[its] === lanes.track[lane]) found.push({ lane: its, name: tile.name[row]!, start: tile.start[row]!, duration: tile.duration[row]! });
  }
  return found.toSorted((one, other) => lanes.depth[one.lane]! - lanes.depth[other.lane]!);
}
