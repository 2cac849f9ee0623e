// Which kernels stand out: on one rank against the others (the analyzer's deviations), or by one launch against the
// kernel's own mean.
import type { KernelRow } from "@/api/models";

export const DEFAULT_SIGMA = 3;

/** Ranks on which the kernel is at least `sigma` standard deviations of the other ranks' means away. */
export function outlyingRanks(row: KernelRow, sigma: number): KernelRow["outliers"] {
  return row.outliers.filter(({ deviations }) => Math.abs(deviations) >= sigma);
}

/** How many standard deviations the longest launch is above the mean; null where all launches are alike. */
export function longestDeviation({ statistics: { max_ns, mean_ns, deviation_ns, count } }: KernelRow): number | null {
  return count > 1 && deviation_ns > 0 ? (max_ns - mean_ns) / deviation_ns : null;
}

export function standsOut(row: KernelRow, sigma: number): boolean {
  return outlyingRanks(row, sigma).length > 0 || (longestDeviation(row) ?? 0) >= sigma;
}
