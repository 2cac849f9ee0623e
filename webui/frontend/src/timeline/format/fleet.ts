/** The overview of a capture: every rank's iterations with their parts (docs/timeline-format.md#the-fleet). */

import { Unreadable, type Block } from "./container";
import { readPlanes, type ColumnType } from "./planes";

const MOST_CELLS = 200_000;

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
  late: number[];
  median_rank: number | null;
}

/** Iterations of all ranks, a value of each column per iteration; times from the fleet's origin, -1 where unknown. */
export type Cells = Record<string, Float64Array | Uint32Array>;

export interface Fleet {
  header: FleetHeader;
  cells: Cells;
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
  if (!/^-?\d{1,20}$/.test(header.origin_ns)) throw new Unreadable("an origin that is no number");
  return header;
}

/** The overview from its header and the inflated bytes of its cells. Throws Unreadable. */
export function readFleet(header: FleetHeader, data: Uint8Array): Fleet {
  const cells = readPlanes(data, header.cell_count, cellTypes(header)) as Cells;
  if ((cells.row as Uint32Array).some((row) => row >= header.ranks.rank.length))
    throw new Unreadable("an iteration of no rank");
  return { header, cells };
}
