/** Which tiles a view needs: the level whose buckets are about a pixel wide, and its tiles that touch the view. Pure. */

import type { RankHeader } from "../format/rank";

export interface TileRange {
  level: number;
  /** Tiles [first, last). */
  first: number;
  last: number;
}

const MOST_TILES = 24;

/** The tiles for a view of a rank, ns from the rank's origin; a level coarser where it would take too many. */
export function chooseTiles(header: RankHeader, start: number, end: number, nsPerPixel: number): TileRange {
  let level = header.levels.findIndex((one) => one.bucket_ns <= 2 * nsPerPixel);
  if (level < 0) level = header.levels.length - 1;
  for (; ; level--) {
    const [first, last] = tilesWithin(header, level, start, end);
    if (level <= 0 || last - first <= MOST_TILES) return { level: Math.max(0, level), first, last };
  }
}

/** The tiles [first, last) of a level that touch [start, end). */
export function tilesWithin(header: Pick<RankHeader, "levels" | "span_ns">, level: number, start: number, end: number): [number, number] {
  const starts = header.levels[level]?.tiles.start_ns ?? [];
  if (end <= 0 || start >= header.span_ns) return [0, 0];
  return [Math.max(0, upperBound(starts, start) - 1), Math.max(1, upperBound(starts, end))];
}

/** When a tile ends: where the next begins. */
export function tileEnd(header: RankHeader, level: number, tile: number): number {
  return header.levels[level]?.tiles.start_ns[tile + 1] ?? Number.POSITIVE_INFINITY;
}

/** The first place in ascending `values` (from `low` to `high`) that is above `wanted`. */
export function upperBound(values: ArrayLike<number>, wanted: number, low = 0, high = values.length): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! <= wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
