/** Everything that a view draws: which bands, which rectangles in them, and which tiles are still wanted. Pure. */

import type { Fleet } from "../format/fleet";
import type { RankHeader, Tile } from "../format/rank";
import type { TimelineState } from "../state";
import { nsPerPixel, type View } from "../view";
import { chooseRows, layOut, type Layout } from "./bands";
import { queueOf, type Counter } from "./counters";
import { chooseTiles, tilesWithin, type TileRange } from "./levels";
import { addRectangles, type Rectangle } from "./rectangles";

export const MOST_RECTANGLES = 15_000;
const WIDE_PIXELS = 4;
const LONGEST_SHARE = 0.02;

export interface Wanted {
  rank: number;
  level: number;
  tile: number;
}

export interface RankScene {
  header: RankHeader;
  /** From the rank's origin to the fleet's, ns. */
  offset: number;
  lanes: Rectangle[][];
  /** Its quantities over time, times from the fleet's origin. */
  counters: Counter[];
  /** A tile of the view could not be read, and why. */
  problem: string;
  loading: boolean;
}

export interface Scene {
  layout: Layout;
  ranks: Map<number, RankScene>;
  wanted: Wanted[];
  rectangles: number;
}

export interface Known {
  headerOf: (rank: number) => RankHeader | undefined;
  tileOf: (rank: number, level: number, tile: number) => Tile | undefined;
  problemOf: (rank: number, level: number, tile: number) => string;
  countersOf: (rank: number) => readonly Counter[];
}

/** The scene of a view over the fleet. */
export function buildScene(fleet: Fleet, state: TimelineState, view: View, known: Known): Scene {
  const open = new Set(state.open);
  const rows = chooseRows(fleet.header, state.fold, state.open);
  const wanted: Wanted[] = [];
  const ranks = new Map<number, RankScene>();
  const shown = rows.map((row) => fleet.header.ranks.rank[row]).filter((rank) => rank != null && open.has(rank));
  let rectangles = 0;
  for (const rank of shown as number[]) {
    const header = known.headerOf(rank);
    if (!header) continue;
    const scene = buildRank(rank, header, offsetOf(fleet, header), state, view, known, wanted, shown.length);
    ranks.set(rank, scene);
    rectangles += scene.lanes.reduce((sum, list) => sum + list.length, 0);
  }
  const wide = (rank: number, lane: number) =>
    ranks.get(rank)?.lanes[lane]?.some((one) => one.width >= WIDE_PIXELS) ?? false;
  const layout = layOut(fleet.header, rows, open, {
    headerOf: known.headerOf,
    countersOf: (rank) => ranks.get(rank)?.counters ?? [],
    wide,
    hidden: new Set(state.hidden),
    pinned: new Set(state.pinned),
  });
  return { layout, ranks, wanted, rectangles };
}

/** ns to add to a rank's times to have them on the fleet's axis; ranks without absolute time begin with an iteration. */
export function offsetOf(fleet: Fleet, header: Pick<RankHeader, "rank" | "time_origin" | "origin_ns" | "iterations">): number {
  if (header.time_origin === "trace") return -(header.iterations.start_ns[0] ?? 0);
  const { rank, shift_ns: shifts } = fleet.header.ranks;
  const shift = shifts[rank.indexOf(header.rank)] ?? 0;
  return Number(BigInt(header.origin_ns) - BigInt(fleet.header.origin_ns)) + shift;
}

function buildRank(
  rank: number,
  header: RankHeader,
  offset: number,
  state: TimelineState,
  view: View,
  known: Known,
  wanted: Wanted[],
  share: number,
): RankScene {
  const [start, end] = [view.start - offset, view.end - offset];
  const range = chooseTiles(header, start, end, nsPerPixel(view));
  const [coarseFirst, coarseLast] = tilesWithin(header, 0, start, end);
  for (let tile = coarseFirst; tile < coarseLast; tile++) wanted.push({ rank, level: 0, tile });
  if (range.level > 0) {
    const count = header.levels[range.level]!.tiles.rows.length;
    // One more on either side, for where a pan goes next.
    for (let tile = Math.max(0, range.first - 1); tile < Math.min(count, range.last + 1); tile++)
      wanted.push({ rank, level: range.level, tile });
  }
  const drawn = findDrawn(rank, header, range, start, end, known);
  const longest = state.longest ? LONGEST_SHARE * (view.end - view.start) : 0;
  const most = MOST_RECTANGLES / Math.max(1, share);
  let lanes = drawLanes(rank, header, drawn, { start, end, width: view.width }, longest, known);
  // More than can be drawn in a frame: leave out what is narrower than a pixel, then two, then four.
  for (let pixels = 1; pixels <= 64 && countAll(lanes) > most; pixels *= 2)
    lanes = drawLanes(rank, header, drawn, { start, end, width: view.width }, Math.max(longest, pixels * nsPerPixel(view)), known);
  const problems = tilesOf(range).map((tile) => known.problemOf(rank, range.level, tile));
  const counters = [...known.countersOf(rank), ...waiting(rank, header, drawn, offset, known)];
  return { header, offset, lanes, counters, problem: problems.find(Boolean) ?? "", loading: drawn?.level !== range.level };
}

/** The launches that waited: only the finest level has each of them. */
function waiting(rank: number, header: RankHeader, drawn: TileRange | undefined, offset: number, known: Known): Counter[] {
  if (!drawn || header.levels[drawn.level]!.bucket_ns > 0) return [];
  return [queueOf(tilesOf(drawn).flatMap((tile) => known.tileOf(rank, drawn.level, tile) ?? []), offset)].filter((one) => one !== undefined);
}

/** The finest level up to the wanted one of which all tiles of the view are here. */
function findDrawn(
  rank: number,
  header: RankHeader,
  range: TileRange,
  start: number,
  end: number,
  known: Known,
): TileRange | undefined {
  for (let level = range.level; level >= 0; level--) {
    const [first, last] = tilesWithin(header, level, start, end);
    const tiles = { level, first, last };
    const here = (tile: number) => known.tileOf(rank, level, tile) ?? known.problemOf(rank, level, tile);
    if (tilesOf(tiles).every(here)) return tiles;
  }
  return undefined;
}

function drawLanes(
  rank: number,
  header: RankHeader,
  range: TileRange | undefined,
  span: { start: number; end: number; width: number },
  leastNs: number,
  known: Known,
): Rectangle[][] {
  const lanes: Rectangle[][] = header.lanes.track.map(() => []);
  if (!range) return lanes;
  const window = { start: span.start, nsPerPixel: (span.end - span.start) / span.width, width: span.width, leastNs, bucketNs: header.levels[range.level]!.bucket_ns };
  const longest = header.levels[range.level]!.tiles.max_duration_ns;
  for (const number of tilesOf(range)) {
    const tile = known.tileOf(rank, range.level, number);
    if (!tile || longest[number]! < leastNs) continue;
    for (let lane = 0; lane < lanes.length; lane++) addRectangles(lanes[lane]!, tile, lane, window, number === range.first);
  }
  return lanes;
}

function tilesOf(range: TileRange): number[] {
  return Array.from({ length: Math.max(0, range.last - range.first) }, (_, at) => range.first + at);
}

function countAll(lanes: Rectangle[][]): number {
  return lanes.reduce((sum, list) => sum + list.length, 0);
}
