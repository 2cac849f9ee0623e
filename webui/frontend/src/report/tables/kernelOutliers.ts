// Which kernels stand out: on one rank or one stream against the others, or by one launch against the kernel's own mean.
import type { KernelRow } from "@/api/models";

export const DEFAULT_SIGMA = 3;
export const COLORS: Record<string, string> = { compute: "--compute", communication: "--communication", memory: "--memory" };

/** What a kernel is compared between. */
export type Sides = "rank" | "stream";

const LEAST_DIFFERENCE = 0.05;

interface Compared {
  mean_ns: number;
  others_mean_ns: number | null;
  deviations: number | null;
}

/** At least `sigma` standard deviations and 5 % away from the others. */
export function isFar({ mean_ns, others_mean_ns, deviations }: Compared, sigma: number): boolean {
  if (others_mean_ns === null || deviations === null) return false;
  return Math.abs(deviations) >= sigma && Math.abs(mean_ns - others_mean_ns) > LEAST_DIFFERENCE * others_mean_ns;
}

/** Ranks on which the kernel is at least `sigma` standard deviations of the other ranks' means away. */
export function outlyingRanks(row: KernelRow, sigma: number): KernelRow["outliers"] {
  return row.outliers.filter(({ deviations }) => Math.abs(deviations) >= sigma);
}

/** Streams on which the kernel is at least `sigma` standard deviations of the other streams' launches away. */
export function outlyingStreams({ statistics }: KernelRow, sigma: number): KernelRow["statistics"]["streams"] {
  return statistics.streams.filter((stream) => isFar(stream, sigma));
}

/** How many standard deviations the longest launch is above the mean; null where all launches are alike. */
export function longestDeviation({ statistics: { max_ns, mean_ns, deviation_ns, count } }: KernelRow): number | null {
  return count > 1 && deviation_ns > 0 ? (max_ns - mean_ns) / deviation_ns : null;
}

export function standsOut(row: KernelRow, sigma: number, sides: Sides): boolean {
  const outlying = sides === "rank" ? outlyingRanks(row, sigma) : outlyingStreams(row, sigma);
  return outlying.length > 0 || (longestDeviation(row) ?? 0) >= sigma;
}

/** A distance as people compare it: "▲ 3.1 σ" is above. */
export function formatDeviations(deviations: number): string {
  const size = Math.abs(deviations);
  return `${deviations > 0 ? "▲" : "▼"} ${size > 99 ? "> 99" : size.toFixed(1)} σ`;
}
