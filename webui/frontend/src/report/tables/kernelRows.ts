// The kernel table: over all ranks or on one, searched and sorted.
import type { KernelRow, KernelSlice, KernelStatistics, RankKernelSlice } from "@/api/models";
import { sortRows } from "@/parts/sorting";

/** The name of all work of a class among a rank's own. */
const ALL = "(all)";

export interface KernelTable {
  rows: readonly KernelRow[];
  classes: readonly Pick<KernelStatistics, "work_class" | "count" | "total_ns">[];
  totalNs: number;
}

/** Over all ranks; with a rank, its longest work by itself. Undefined where that rank is not here. */
export function kernelTable(all: KernelSlice, ofRanks: RankKernelSlice | undefined, rank: number | undefined): KernelTable | undefined {
  if (rank === undefined) return { rows: all.rows, classes: all.classes, totalNs: all.total_ns };
  const work = ofRanks?.ranks.find((one) => one.rank === rank)?.work;
  if (!work) return undefined;
  const known = new Map(all.rows.map((row) => [`${row.statistics.work_class} ${row.statistics.name}`, row]));
  const classes = work.filter(({ name }) => name === ALL);
  const rows = work
    .filter(({ name }) => name !== ALL)
    .map((row): KernelRow => {
      const { spoken_name = row.name, outliers = [] } = known.get(`${row.work_class} ${row.name}`) ?? {};
      return { spoken_name, statistics: { ...row, ranks: 1, histogram: { from_ns: [], counts: [] }, streams: [] }, outliers, bars: [] };
    });
  return { rows, classes, totalNs: classes.reduce((sum, { total_ns: ns }) => sum + ns, 0) };
}

const VALUES: Record<string, (row: KernelStatistics) => number | string> = {
  total: (row) => row.total_ns,
  count: (row) => row.count,
  mean: (row) => row.mean_ns,
  max: (row) => row.max_ns,
  p99: (row) => row.p99_ns,
  name: (row) => row.name,
};

/** Rows with `text` in their name, sorted. */
export function findKernels(rows: readonly KernelRow[], text: string, sort: string): KernelRow[] {
  const sought = text.toLowerCase();
  const found = rows.filter(({ statistics }) => statistics.name.toLowerCase().includes(sought));
  return sortRows(found, sort, ({ statistics }, id) => VALUES[id]?.(statistics));
}
