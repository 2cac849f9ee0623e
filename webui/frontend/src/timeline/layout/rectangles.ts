/**
 * The draw list of a lane: rectangles in pixels of the rows that are in view. Pure.
 *
 * Guarantees: at most one rectangle per pixel and lane where rows are narrower, the longest of them, which says how
 * many it stands for and how much of the pixel they cover; carried rows are drawn once.
 */

import type { Tile } from "../format/rank";
import { upperBound } from "./levels";

export interface Rectangle {
  x: number;
  width: number;
  name: number;
  /** Rows that it stands for. */
  count: number;
  /** The share of its width, 0 to 1, in which one of these rows runs. */
  covered: number;
  /** Of the row itself, ns from the rank's origin. */
  start: number;
  duration: number;
  /** The row's place in its tile. */
  tile: Tile;
  row: number;
}

export interface Window {
  /** ns from the rank's origin at pixel 0. */
  start: number;
  nsPerPixel: number;
  width: number;
  /** Rows shorter than this are left out. */
  leastNs: number;
  /** Length of the level's buckets; 0 where each row stands for itself. */
  bucketNs: number;
}

/** Adds the rectangles of a lane of one tile, of rows that start before `until`, to the list. */
export function addRectangles(
  list: Rectangle[],
  tile: Tile,
  lane: number,
  window: Window,
  withCarried: boolean,
  until = Number.POSITIVE_INFINITY,
): void {
  if (withCarried) {
    for (let row = 0; row < tile.carried; row++) if (tile.lane[row] === lane) addRow(list, tile, row, window);
  }
  const end = window.start + window.width * window.nsPerPixel;
  const last = tile.laneBegin[lane + 1]!;
  // Rows of a lane do not overlap: only the one before the first that starts in view can reach into it.
  let row = Math.max(tile.laneBegin[lane]!, upperBound(tile.start, window.start, tile.laneBegin[lane], last) - 1);
  for (; row < last && tile.start[row]! < end && tile.start[row]! < until; row++) addRow(list, tile, row, window);
}

function addRow(list: Rectangle[], tile: Tile, row: number, window: Window): void {
  const start = tile.start[row]!;
  const duration = tile.duration[row]!;
  if (duration < window.leastNs) return;
  const from = (start - window.start) / window.nsPerPixel;
  const to = from + duration / window.nsPerPixel;
  if (to < 0 || from > window.width) return;
  const x = Math.max(from, -1);
  const width = Math.max(Math.min(to, window.width + 1) - x, 1);
  const count = tile.count ? tile.count[row]! : 1;
  const coveredNs = count > 1 && tile.covered ? Math.max(duration, (tile.covered[row]! / 255) * window.bucketNs) : duration;
  const covered = width < 2 ? Math.min(1, coveredNs / (width * window.nsPerPixel)) : 1;
  const before = list.at(-1);
  if (before && width < 2 && before.width < 2 && Math.floor(before.x) === Math.floor(x)) {
    const both = before.count + count;
    if (duration > before.duration) Object.assign(before, { x, width, name: tile.name[row]!, start, duration, tile, row });
    before.count = both;
    before.covered = Math.min(1, before.covered + covered);
    return;
  }
  list.push({ x, width, name: tile.name[row]!, count, covered, start, duration, tile, row });
}

/** The rectangle at a pixel, by binary search; a pixel on either side is near enough. */
export function rectangleAt(list: Rectangle[], x: number): Rectangle | undefined {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]!.x <= x) low = middle + 1;
    else high = middle;
  }
  const before = list[low - 1];
  if (before && x <= before.x + before.width + 1) return before;
  const after = list[low];
  return after && after.x - x <= 1 ? after : undefined;
}
