/** The overview of a capture: every rank's iterations with their parts (docs/timeline-format.md#the-fleet). */

import { Unreadable, type Block } from "./container";
import { readPlanes, type ColumnType } from "./planes";

const MOST_CELLS = 200_000;
const MOST_MOMENTS = 16 << 20;

export interface FleetHeader {
  form: string;
  origin_ns: string;
  span_ns: number;
  stages: string[];
  ranks: {
    rank: (number | null)[];
    host: string[];
    kind: string[];
    detail: ("full" | "stages" | "none")[];
    file_bytes: number[];
    shift_ns: number[];
  };
  cells: Block;
  cell_count: number;
  cells_left_out: number;
  /** Of each iteration of a rank; these four are missing in files of older versions. */
  moments?: number[];
  courses?: Block;
  course_count?: number;
  course_classes?: string[];
  late: number[];
  median_rank: number | null;
}

/** Iterations of all ranks, a value of each column per iteration; times from the fleet's origin, -1 where unknown. */
export type Cells = Record<string, Float64Array | Uint32Array>;

/** Of which class most of each moment of the cells was: `data[begin[cell] + moment]` is a place in `classes`. */
export interface Courses {
  classes: string[];
  /** Moments of each iteration, by row; 0 where they are not known. */
  moments: number[];
  begin: Uint32Array;
  data: Uint8Array;
}

export interface Fleet {
  header: FleetHeader;
  cells: Cells;
  courses: Courses;
}

/** The types of the columns of cells, in their order. */
export function cellTypes(header: FleetHeader): Record<string, ColumnType> {
  const types: Record<string, ColumnType> = { row: "u4", index: "i8", start_ns: "i8", duration_ns: "i8" };
  for (const part of ["compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle"])
    types[`${part}_ns`] = "i8";
  for (const stage of header.stages) types[`stage_${stage}_ns`] = "i8";
  return types;
}

/** The header, checked. Throws Unreadable. */
export function checkFleetHeader(value: unknown): FleetHeader {
  const header = value as FleetHeader;
  if (header?.form !== "fleetprof-timeline-fleet") throw new Unreadable("not the timeline of a fleet");
  const { ranks, stages } = header;
  if (!Array.isArray(stages) || stages.length > 64) throw new Unreadable("the header lacks its stages");
  const columns = [ranks?.rank, ranks?.host, ranks?.kind, ranks?.detail, ranks?.file_bytes, ranks?.shift_ns];
  if (!columns.every((column) => Array.isArray(column) && column.length === columns[0]!.length))
    throw new Unreadable("ranks: columns of unequal length");
  if (!(header.cell_count >= 0 && header.cell_count <= MOST_CELLS)) throw new Unreadable("more iterations than allowed");
  const { moments = [], course_count: count = 0 } = header;
  if (!(count >= 0 && count <= MOST_MOMENTS)) throw new Unreadable("more moments of courses than allowed");
  if (header.moments && moments.length !== ranks.rank.length) throw new Unreadable("moments: not one for each rank");
  if (!moments.every((each) => Number.isInteger(each) && each >= 0 && each <= MOST_MOMENTS))
    throw new Unreadable("moments: a number that is none");
  if (!/^-?\d{1,20}$/.test(header.origin_ns)) throw new Unreadable("an origin that is no number");
  return header;
}

/** The overview from its header and the inflated bytes of its cells and courses. Throws Unreadable. */
export function readFleet(header: FleetHeader, data: Uint8Array, courses: Uint8Array): Fleet {
  const cells = readPlanes(data, header.cell_count, cellTypes(header)) as Cells;
  if ((cells.row as Uint32Array).some((row) => row >= header.ranks.rank.length))
    throw new Unreadable("an iteration of no rank");
  return { header, cells, courses: readCourses(header, cells, courses) };
}

function readCourses(header: FleetHeader, cells: Cells, data: Uint8Array): Courses {
  const classes = header.course_classes ?? [];
  const moments = header.moments ?? header.ranks.rank.map(() => 0);
  const begin = new Uint32Array(header.cell_count);
  let at = 0;
  cells.row!.forEach((row, cell) => {
    begin[cell] = at;
    at += moments[row]!;
  });
  if (at !== data.length) throw new Unreadable("the courses: another number of moments than the iterations have");
  if (data.some((cls) => cls >= classes.length)) throw new Unreadable("the courses: a class that is none of them");
  return { classes, moments, begin, data };
}
