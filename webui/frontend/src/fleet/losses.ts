// Losses of jobs summed by namespace, by the value of a label, or each by itself. Pure.
import type { LossRow } from "@/api/models";

export interface LossSum {
  key: string;
  jobs: number;
  /** Of those jobs of which it is known; null where it is of none. */
  gpuHours: number | null;
  lostGpuHours: number | null;
  lostKwh: number | null;
  /** Jobs of which the loss is not known. */
  unknown: number;
  rows: LossRow[];
}

export const WITHOUT_LABEL = "(without this label)";

/** Sums by "namespace", "job", or the key of a label; the largest loss first. */
export function sumLosses(rows: readonly LossRow[], by: string): LossSum[] {
  const sums = new Map<string, LossSum>();
  for (const row of rows) {
    const key = keyOf(row, by);
    const sum = sums.get(key) ?? { key, jobs: 0, gpuHours: null, lostGpuHours: null, lostKwh: null, unknown: 0, rows: [] };
    sum.jobs += 1;
    sum.gpuHours = add(sum.gpuHours, row.gpu_hours);
    sum.lostGpuHours = add(sum.lostGpuHours, row.lost_gpu_hours);
    sum.lostKwh = add(sum.lostKwh, row.lost_kwh);
    sum.unknown += row.lost_gpu_hours === null ? 1 : 0;
    sum.rows.push(row);
    sums.set(key, sum);
  }
  return [...sums.values()].toSorted((one, other) => (other.lostGpuHours ?? 0) - (one.lostGpuHours ?? 0) || (other.gpuHours ?? 0) - (one.gpuHours ?? 0) || one.key.localeCompare(other.key));
}

function keyOf({ namespace, kind, name, labels }: LossRow, by: string): string {
  if (by === "namespace") return namespace;
  if (by === "job") return `${namespace}/${kind}/${name}`;
  return labels.find((label) => label.startsWith(`${by}=`))?.slice(by.length + 1) ?? WITHOUT_LABEL;
}

function add(sum: number | null, value: number | null): number | null {
  return value === null ? sum : (sum ?? 0) + value;
}
