/**
 * Search in the events themselves: the next one with a name, wherever it lies and however short it is.
 *
 * Guarantees: reads tile after tile, as few as there are between here and there; stops when it is cancelled.
 */

import { tilesWithin } from "../layout/levels";
import type { Tile } from "../format/rank";
import type { Source } from "./source";

export interface FoundEvent {
  lane: number;
  name: number;
  start: number;
  duration: number;
}

/** The first event of these names that starts behind `from` (ns from the rank's origin), or the last one before it. */
export async function findEvent(
  source: Source,
  rank: number,
  names: readonly number[],
  from: number,
  forward: boolean,
  signal?: AbortSignal,
): Promise<FoundEvent | null> {
  const header = await source.header(rank);
  const wanted = new Set(names);
  const level = header.levels.length - 1;
  const count = header.levels[level]?.tiles.rows.length ?? 0;
  const [here] = tilesWithin(header, level, Math.min(Math.max(from, 0), header.span_ns - 1), header.span_ns);
  for (let number = here; number >= 0 && number < count; number += forward ? 1 : -1) {
    const tile = await source.tile(rank, level, number, signal);
    const row = nearest(tile, wanted, from, forward);
    if (row >= 0)
      return { lane: tile.lane[row]!, name: tile.name[row]!, start: tile.start[row]!, duration: tile.duration[row]! };
  }
  return null;
}

function nearest(tile: Tile, wanted: ReadonlySet<number>, from: number, forward: boolean): number {
  let best = -1;
  for (let row = tile.carried; row < tile.rows; row++) {
    const start = tile.start[row]!;
    if (!wanted.has(tile.name[row]!) || (forward ? start <= from : start >= from)) continue;
    if (best < 0 || (forward ? start < tile.start[best]! : start > tile.start[best]!)) best = row;
  }
  return best;
}
