// The ranks as rows, from the service's columns.
import type { RankSlice } from "@/api/models";
import { partsOf } from "@/theme/classes";

export interface RankRow {
  /** Position in the columns. */
  index: number;
  rank: number | null;
  host: string;
  kind: string;
  parts: number[];
  span: number;
}

export function rankRows(columns: RankSlice): RankRow[] {
  return columns.rank.map((rank, index) => {
    const measure = (name: string) => columns.measures[name]?.[index];
    return {
      index,
      rank,
      host: columns.host_name[index] ?? "",
      kind: columns.kind[index] ?? "",
      parts: partsOf(measure),
      span: measure("span") ?? 0,
    };
  });
}

/** Ranks in the order that is asked for: by number, or the most of a measure first. */
export function orderRows(rows: readonly RankRow[], columns: RankSlice, by: string): RankRow[] {
  if (by === "rank") return [...rows];
  const values = columns.measures[by];
  if (!values) return [...rows];
  return rows.toSorted((a, b) => (values[b.index] ?? -1) - (values[a.index] ?? -1));
}

export const rankName = (rank: number | null) => (rank === null ? "?" : String(rank));
