/** The events of a rank that run within a span, from its finest tiles. */

import { tilesWithin } from "../layout/levels";
import type { Tile } from "../format/rank";
import type { Source } from "./source";

export const MOST_TILES = 256;

export interface Row {
  tile: Tile;
  row: number;
}

/** Each once, by tile. Rejects with a sentence for people where there are no single events, or too many tiles. */
export async function* rowsWithin(source: Source, rank: number, start: number, end: number, signal?: AbortSignal): AsyncGenerator<Row> {
  const header = await source.header(rank);
  if (!header.whole) throw new Error(`The trace of rank ${rank} is too long for its single events.`);
  const level = header.levels.length - 1;
  const [first, last] = tilesWithin(header, level, start, end);
  if (last - first > MOST_TILES) throw new Error("Too many events lie within this time: mark a shorter one.");
  for (let number = first; number < last; number++) {
    const tile = await source.tile(rank, level, number, signal);
    // Carried rows stand in the tile in which they began too.
    for (let row = number === first ? 0 : tile.carried; row < tile.rows; row++)
      if (tile.start[row]! < end && tile.start[row]! + tile.duration[row]! > start) yield { tile, row };
  }
}
