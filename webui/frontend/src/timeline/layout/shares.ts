/** What an iteration of a folded rank is made of, as parts that stand side by side in its place. Pure. */

import type { Cells } from "../format/fleet";

export type PartClass = "compute" | "communication_overlapped" | "communication_exposed" | "memory" | "idle";

export interface Part {
  cls: PartClass;
  share: number;
}

const COLUMNS: [PartClass, string][] = [
  ["communication_exposed", "exposed_communication_ns"],
  ["memory", "exposed_memory_ns"],
  ["idle", "idle_ns"],
];

/** The parts of a cell that are not nothing; empty where its parts are not known. */
export function partsOf(cells: Cells, cell: number): Part[] {
  const at = (column: string) => Math.max(0, cells[column]?.[cell] ?? 0);
  if ((cells.compute_ns?.[cell] ?? -1) < 0) return [];
  const overlapped = Math.min(at("overlapped_communication_ns"), at("compute_ns"));
  const parts: [PartClass, number][] = [
    ["compute", at("compute_ns") - overlapped],
    ["communication_overlapped", overlapped],
    ...COLUMNS.map(([cls, column]): [PartClass, number] => [cls, at(column)]),
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
