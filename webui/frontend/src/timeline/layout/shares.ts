/**
 * What an iteration of a folded rank is made of, as parts that stand side by side in its place. Pure.
 *
 * Idle time is data loading as far as the iteration's stage of data loading reaches: who waits there waits for data.
 */

import type { Cells } from "../format/fleet";

export type PartClass = "compute" | "communication_overlapped" | "communication_exposed" | "memory" | "data_loading" | "idle";

export interface Part {
  cls: PartClass;
  share: number;
}

const COLUMNS: [PartClass, string][] = [
  ["communication_exposed", "exposed_communication_ns"],
  ["memory", "exposed_memory_ns"],
];

/** The parts of a cell that are not nothing; empty where its parts are not known. */
export function partsOf(cells: Cells, cell: number): Part[] {
  const at = (column: string) => Math.max(0, cells[column]?.[cell] ?? 0);
  if ((cells.compute_ns?.[cell] ?? -1) < 0) return [];
  const overlapped = Math.min(at("overlapped_communication_ns"), at("compute_ns"));
  const loading = Math.min(at("idle_ns"), at("stage_data_loading_ns"));
  const parts: [PartClass, number][] = [
    ["compute", at("compute_ns") - overlapped],
    ["communication_overlapped", overlapped],
    ...COLUMNS.map(([cls, column]): [PartClass, number] => [cls, at(column)]),
    ["data_loading", loading],
    ["idle", at("idle_ns") - loading],
  ];
  const total = parts.reduce((sum, [, ns]) => sum + ns, 0);
  return total ? parts.filter(([, ns]) => ns > 0).map(([cls, ns]) => ({ cls, share: ns / total })) : [];
}

/** Places of the cells of each row, in their order. */
export function cellsByRow(cells: Cells, rows: number): number[][] {
  const found: number[][] = Array.from({ length: rows }, () => []);
  cells.row?.forEach((row, cell) => found[row]?.push(cell));
  return found;
}
