// Iteration time and memory by batch size, as lines through captures at two sizes or more: the same fit, intervals and
// limits as `fleetprof whatif A@8 B@16` (analyzer/fleetprof_analyzer/whatif/batch_sizes.py). Pure.
import type { PredictedValue } from "@/api/models";

export interface SizedCapture {
  size: number;
  /** ns, means over the ranks. */
  iterations: readonly number[];
  memoryBytes: number | null;
}

interface FittedLine {
  points: readonly { size: number; value: number; error: number }[];
  slope: number;
  constant: number;
  /** Of the values from the line, relative, one standard deviation. */
  apart: number;
  beyond: number;
  between: number;
}

export interface BatchLines {
  captures: readonly SizedCapture[];
  time: FittedLine;
  memory: FittedLine | null;
  /** From half the smallest to twice the largest size there is an answer. */
  least: number;
  most: number;
}

const NORMAL_95 = 1.96;
const OF_MEDIANS = 1.2533;
const DEVIATION = 1.4826;
const [BETWEEN, BEYOND, OF_MEMORY] = [0.02, 0.06, 0.005];
const REACH = 2;

/** The lines; null without captures at two sizes. */
export function fitLines(captures: readonly SizedCapture[]): BatchLines | null {
  const known = captures.filter(({ iterations }) => iterations.length > 0);
  const sizes = known.map(({ size }) => size);
  if (new Set(sizes).size < 2) return null;
  const times = known.map(({ size, iterations }) => {
    const middle = median(iterations);
    const deviation = Math.max(DEVIATION * median(iterations.map((one) => Math.abs(one - middle))), standardDeviation(iterations));
    return { size, value: middle, error: (OF_MEDIANS * deviation) / Math.sqrt(iterations.length) / middle };
  });
  const peaks = known.flatMap(({ size, memoryBytes }) => (memoryBytes === null ? [] : [{ size, value: memoryBytes, error: 0 }]));
  return {
    captures: known,
    time: fit(times, BEYOND, BETWEEN),
    memory: new Set(peaks.map(({ size }) => size)).size < 2 ? null : fit(peaks, OF_MEMORY, OF_MEMORY),
    least: Math.ceil(Math.min(...sizes) / REACH),
    most: Math.floor(REACH * Math.max(...sizes)),
  };
}

/** The value at a size, with its interval. */
export function valueAt(line: FittedLine, size: number): PredictedValue {
  const { points } = line;
  const value = line.slope * size + line.constant;
  const middle = mean(points.map((one) => one.size));
  const spread = points.reduce((sum, one) => sum + (one.size - middle) ** 2, 0);
  const weight = (of: number) => 1 / points.length + ((of - middle) * (size - middle)) / spread;
  const carried = Math.sqrt(points.reduce((sum, one) => sum + (weight(one.size) * one.error * one.value) ** 2, 0)) / value;
  const [least, most] = [Math.min(...points.map((one) => one.size)), Math.max(...points.map((one) => one.size))];
  const away = Math.max(Math.log2(size / most), Math.log2(least / size), 0);
  const inner = away || points.some((one) => one.size === size) ? 0 : line.between;
  const half = Math.hypot(NORMAL_95 * carried, NORMAL_95 * line.apart, Math.max(inner, line.beyond * away));
  return { value, low: value * Math.max(1 - half, 0), high: value * (1 + half) };
}

/** Samples of each rank in a second. */
export const throughputAt = ({ time }: BatchLines, size: number) => size / (valueAt(time, size).value / 1e9);

/** The whole size in reach at which `measure` is nearest to `wanted`. */
export function sizeNear(lines: BatchLines, measure: (size: number) => number, wanted: number): number {
  let nearest = lines.least;
  for (let size = lines.least; size <= lines.most; size += 1) if (Math.abs(measure(size) - wanted) < Math.abs(measure(nearest) - wanted)) nearest = size;
  return nearest;
}

// By relative errors, which are alike at all sizes.
function fit(points: FittedLine["points"], beyond: number, between: number): FittedLine {
  const weights = points.map(({ value }) => 1 / value ** 2);
  const all = weights.reduce((sum, one) => sum + one, 0);
  const weighted = (of: (point: FittedLine["points"][number]) => number) => points.reduce((sum, one, at) => sum + weights[at]! * of(one), 0) / all;
  const [x, y] = [weighted(({ size }) => size), weighted(({ value }) => value)];
  const slope = weighted(({ size, value }) => (size - x) * (value - y)) / weighted(({ size }) => (size - x) ** 2);
  const constant = y - slope * x;
  const free = points.length - 2;
  const squares = points.reduce((sum, { size, value }) => sum + ((slope * size + constant) / value - 1) ** 2, 0);
  return { points, slope, constant, apart: free > 0 ? Math.sqrt(squares / free) : 0, beyond, between };
}

const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

function standardDeviation(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((one) => (one - middle) ** 2)));
}
