/** A rank's file: what its header says, checked, and its tiles and tree as columns (docs/timeline-format.md). */

import { Unreadable, type Block } from "./container";
import { readPlanes, type Column, type ColumnType } from "./planes";

const WIDE = 1;
const LINKED = 2;
const MOST_TILES = 100_000;
const MOST_LANES = 65_536;
const MOST_NAMES = 65_536;
const MOST_NODES = 20_000;
const MOST_LEVELS = 32;

export interface Tiles {
  start_ns: number[];
  offset: number[];
  length: number[];
  crc32: number[];
  rows: number[];
  carried: number[];
  max_duration_ns: number[];
  flags: number[];
}

export interface Level {
  bucket_ns: number;
  rows: number;
  tiles: Tiles;
}

export interface RankHeader {
  form: string;
  rank: number | null;
  kind: "gpu" | "cpu";
  origin_ns: string;
  time_origin: "unix" | "trace";
  span_ns: number;
  rows: number;
  left_out: number;
  whole: boolean;
  classes: string[];
  stages: string[];
  tracks: { kind: string[]; owner: string[]; name: string[]; main: number };
  lanes: { track: number[]; depth: number[] };
  names: { text: string[]; short: string[]; cls: number[]; count: number[]; total_ns: number[] };
  levels: Level[];
  iterations: { index: number[]; start_ns: number[]; duration_ns: number[] };
  stage_pieces: { iteration: number[]; stage: number[]; start_ns: number[]; duration_ns: number[] };
  nodes: { block: Block; count: number; left_out: number };
}

/** What a node of the tree is, as its column `kind` says. */
export const NODE = { iteration: 0, stage: 1, row: 2, thread: 3 } as const;

/** Rows of a tile by lane and start, times from the rank's origin; the first `carried` rows began before the tile. */
export interface Tile {
  rows: number;
  carried: number;
  lane: Column;
  name: Column;
  start: Float64Array;
  duration: Float64Array;
  count: Column | null;
  covered: Column | null;
  /** When each row was launched, from the rank's origin; NaN where that is not known. */
  launch: Float64Array | null;
  launchLane: Column | null;
  /** Where the rows of each lane begin behind the carried ones, and the last lane's end; of lanes + 1. */
  laneBegin: Uint32Array;
}

export interface NodeColumns {
  parent: Int32Array;
  kind: Uint8Array;
  item: Uint32Array;
  start_ns: Float64Array;
  duration_ns: Float64Array;
  below: Uint32Array;
  device_ns: Float64Array;
}

export const NODE_TYPES: Record<keyof NodeColumns, ColumnType> = {
  parent: "i4",
  kind: "u1",
  item: "u4",
  start_ns: "i8",
  duration_ns: "i8",
  below: "u4",
  device_ns: "i8",
};

/** The header, where all that the page relies on holds. Throws Unreadable. */
export function checkRankHeader(value: unknown): RankHeader {
  const header = value as RankHeader;
  if (header?.form !== "fleetprof-timeline-rank") throw new Unreadable("not the timeline of a rank");
  try {
    checkParts(header);
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable("the header lacks a part");
  }
  return header;
}

function checkParts(header: RankHeader): void {
  const { lanes, names, levels, tracks } = header;
  for (const columns of [lanes, names, header.iterations, header.stage_pieces]) checkEqual(Object.values(columns));
  checkEqual([tracks.kind, tracks.owner, tracks.name]);
  if (lanes.track.length > MOST_LANES || names.text.length > MOST_NAMES || levels.length > MOST_LEVELS)
    throw new Unreadable("more lanes, names or levels than are allowed");
  if (!(header.nodes.count >= 0 && header.nodes.count <= MOST_NODES)) throw new Unreadable("more nodes than allowed");
  checkBelow(lanes.track, tracks.kind.length, "tracks");
  checkBelow(names.cls, header.classes.length, "classes");
  checkBelow(header.stage_pieces.stage, header.stages.length, "stages");
  checkBelow(header.stage_pieces.iteration, header.iterations.index.length, "iterations");
  if (!/^-?\d{1,20}$/.test(header.origin_ns)) throw new Unreadable("an origin that is no number");
  for (const { tiles } of levels) {
    const columns = Object.values(tiles) as number[][];
    checkEqual(columns);
    if (tiles.rows.length > MOST_TILES) throw new Unreadable("more tiles than are allowed");
    for (const column of columns) checkBelow(column, Number.MAX_SAFE_INTEGER, "tiles");
    if (tiles.rows.some((rows, at) => tiles.carried[at]! > rows)) throw new Unreadable("a tile carries too much");
    if (tiles.start_ns.some((start, at) => at > 0 && start <= tiles.start_ns[at - 1]!))
      throw new Unreadable("tiles are not in their order");
  }
}

function checkEqual(columns: unknown[][]): void {
  if (!columns.every((column) => Array.isArray(column) && column.length === columns[0]!.length))
    throw new Unreadable("columns of unequal length");
}

function checkBelow(values: ArrayLike<number>, limit: number, what: string): void {
  for (let at = 0; at < values.length; at++)
    if (!(values[at]! >= 0 && values[at]! < limit)) throw new Unreadable(`${what}: a number that is none of them`);
}

/** The columns of a tile in their order. */
export function tileTypes(header: RankHeader, level: number, number: number): Record<string, ColumnType> {
  const flags = header.levels[level]!.tiles.flags[number]!;
  const lane = header.lanes.track.length <= 256 ? "u1" : "u2";
  const types: Record<string, ColumnType> = {
    lane,
    name: header.names.text.length <= 65_536 ? "u2" : "u4",
    start_ns: flags & WIDE ? "i8" : "i4",
    duration_ns: flags & WIDE ? "u8" : "u4",
  };
  if (header.levels[level]!.bucket_ns > 0) Object.assign(types, { count: "u4", covered: "u1" });
  if (flags & LINKED) Object.assign(types, { launched_ns: "u4", launch_lane: lane });
  return types;
}

/** A tile from its inflated bytes. Throws Unreadable. */
export function readTile(header: RankHeader, level: number, number: number, data: Uint8Array): Tile {
  const { tiles } = header.levels[level]!;
  const rows = tiles.rows[number]!;
  const carried = tiles.carried[number]!;
  const columns = readPlanes(data, rows, tileTypes(header, level, number));
  const lanes = header.lanes.track.length;
  checkBelow(columns.lane!, lanes, "lanes");
  checkBelow(columns.name!, header.names.text.length, "names");
  if (columns.launch_lane) checkBelow(columns.launch_lane, lanes, "lanes of launches");
  const begin = tiles.start_ns[number]!;
  const start = Float64Array.from(columns.start_ns!, (value) => value + begin);
  const launched = columns.launched_ns;
  const laneBegin = new Uint32Array(lanes + 1).fill(rows);
  for (let row = rows - 1; row >= carried; row--) laneBegin[columns.lane![row]!] = row;
  for (let lane = lanes - 1; lane >= 0; lane--)
    if (laneBegin[lane] === rows) laneBegin[lane] = laneBegin[lane + 1]!;
  return {
    rows,
    carried,
    lane: columns.lane!,
    name: columns.name!,
    start,
    duration: Float64Array.from(columns.duration_ns!),
    count: columns.count ?? null,
    covered: columns.covered ?? null,
    launch: launched ? Float64Array.from(launched, (v, row) => (v ? start[row]! - (v - 1) : Number.NaN)) : null,
    launchLane: columns.launch_lane ?? null,
    laneBegin,
  };
}

/** The tree from its inflated bytes. Throws Unreadable. */
export function readNodes(header: RankHeader, data: Uint8Array): NodeColumns {
  const nodes = readPlanes(data, header.nodes.count, NODE_TYPES) as unknown as NodeColumns;
  const { iterations, stage_pieces: stages, names, tracks } = header;
  const limits = [iterations.index.length, stages.stage.length, names.text.length, tracks.kind.length];
  for (let node = 0; node < header.nodes.count; node++) {
    const limit = limits[nodes.kind[node]!];
    const parent = nodes.parent[node]!;
    if (limit === undefined || nodes.item[node]! >= limit || parent < -1 || parent >= node)
      throw new Unreadable("the tree: a node that fits nowhere");
  }
  return nodes;
}
