/** Quantities over time that are drawn as rows: samples of a rank's device and host, and how many launches were waiting. Pure. */

import type { SampleSlice } from "@/api/models";
import type { Tile } from "../format/rank";
import { upperBound } from "./levels";

export interface Counter {
  name: string;
  unit: string;
  /** ns from the fleet's origin, ascending. */
  at: ArrayLike<number>;
  values: ArrayLike<number | null>;
  most: number;
  /** Why the device slowed itself, by reason: the share of each sample's time. */
  throttled: { reason: string; at: ArrayLike<number>; values: ArrayLike<number | null> }[];
}

/** The counters of a rank from the samples of a report, in the order in which they are rows. */
export const SAMPLED: readonly string[] = [
  "power", "sm_clock", "sm_active", "tensor_active", "gpu_busy", "dram_active", "memory_used",
  "nvlink_received", "nvlink_sent", "pcie_received", "pcie_sent", "infiniband_received", "infiniband_sent",
];
export const QUEUE = "queued_launches";
const THROTTLED = "throttled_by_";

/** Those of one rank; `originNs` is the fleet's, `shiftNs` what was added to the rank's times. */
export function countersOf(page: SampleSlice, rank: number, originNs: bigint, shiftNs: number): Counter[] {
  if (page.origin_unix_ns === null) return [];
  const from = Number(BigInt(page.origin_unix_ns) - originNs) + shiftNs;
  const own = page.series.filter(({ ranks }) => ranks.includes(rank));
  const timed = (at: readonly number[]) => at.map((one) => one + from);
  const throttled = own
    .filter(({ name }) => name.startsWith(THROTTLED))
    .map(({ name, at_ns, values }) => ({ reason: name.slice(THROTTLED.length).replaceAll("_", " "), at: timed(at_ns), values }));
  return SAMPLED.flatMap((name) => {
    const one = own.find((series) => series.name === name);
    if (!one) return [];
    const most = one.unit === "%" ? 100 : Math.max(0, ...one.values.map((value) => value ?? 0));
    return [{ name, unit: one.unit, at: timed(one.at_ns), values: one.values, most, throttled: name === "sm_clock" ? throttled : [] }];
  });
}

/** The value of the last sample up to a time, or of the first behind it; null where none is known. */
export function valueAt(at: ArrayLike<number>, values: ArrayLike<number | null>, time: number): number | null {
  return values[Math.max(0, upperBound(at, time) - 1)] ?? null;
}

/** The reasons for which the device slowed itself at a time, with the share of the sample's time. */
export function throttledAt({ throttled }: Counter, time: number): [reason: string, share: number][] {
  return throttled.flatMap(({ reason, at, values }): [string, number][] => {
    const share = valueAt(at, values, time) ?? 0;
    return share > 0 ? [[reason, share]] : [];
  });
}

const queues = new WeakMap<Tile, { tiles: readonly Tile[]; queue: Omit<Counter, "at"> & { at: Float64Array } }>();

/** How many launches waited for the device, from the rows of the finest tiles; undefined where none says when it was launched. */
export function queueOf(tiles: readonly Tile[], offset: number): Counter | undefined {
  const [first] = tiles;
  if (!first) return undefined;
  let known = queues.get(first);
  if (!known || known.tiles.length !== tiles.length || known.tiles.some((tile, at) => tile !== tiles[at])) {
    const steps: [at: number, by: number][] = [];
    tiles.forEach((tile, number) => {
      for (let row = number === 0 ? 0 : tile.carried; row < tile.rows; row++) {
        const launch = tile.launch?.[row] ?? Number.NaN;
        if (!Number.isNaN(launch) && launch < tile.start[row]!) steps.push([launch, 1], [tile.start[row]!, -1]);
      }
    });
    steps.sort(([one, by], [other, otherBy]) => one - other || by - otherBy);
    let waiting = 0;
    const values = steps.map(([, by]) => (waiting += by));
    const at = Float64Array.from(steps, ([time]) => time);
    known = { tiles, queue: { name: QUEUE, unit: "", at, values, most: values.reduce((most, one) => Math.max(most, one), 0), throttled: [] } };
    queues.set(first, known);
  }
  const { queue } = known;
  return queue.at.length ? { ...queue, at: queue.at.map((time) => time + offset) } : undefined;
}
