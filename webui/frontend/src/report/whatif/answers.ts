// The answer to the changes that are chosen: that of the replay where it was made in advance, else the product of the
// answers to the single changes, which says so. Pure.
import type { PredictedValue, Prediction, WhatIfSlice } from "@/api/models";
import { type BatchLines, median, valueAt } from "./lines";

/** Changes by key: network → "2x". */
export type Changes = Readonly<Record<string, string>>;

export interface Answer {
  iteration: PredictedValue;
  /** Against the iteration as recorded; share. */
  change: number;
  throughputChange: number;
  memoryBytes: PredictedValue | null;
  /** Shares by what the time consists of; null where nobody computed it for all of these changes together. */
  boundBy: Readonly<Record<string, number>> | null;
  restsOn: readonly string[];
  doubt: string;
  /** Made of answers to single changes. */
  isProduct: boolean;
}

const SIZE = "batch_size";

export function readChanges(text: string | undefined): Changes {
  const pairs = (text ?? "").split(",").map((one) => one.split("="));
  return Object.fromEntries(pairs.filter(([key, value]) => key && value).map(([key, value]) => [key!, value!]));
}

export const listEdits = (changes: Changes) => Object.entries(changes).map(([key, value]) => `${key}=${value}`);

/** By change the values that were predicted by themselves, and why others were not. */
export function listOffers(slice: WhatIfSlice): { values: ReadonlyMap<string, string[]>; refusals: ReadonlyMap<string, string> } {
  const [values, refusals] = [new Map<string, string[]>(), new Map<string, string>()];
  for (const { edits, refused } of slice.predictions?.scenarios ?? []) {
    const [key, value] = (edits.length === 1 ? edits[0]! : "").split("=");
    if (!key || value === undefined) continue;
    if (refused) refusals.set(key, refused);
    else values.set(key, [...(values.get(key) ?? []), value]);
  }
  return { values, refusals };
}

/** The answer; undefined where a change has none. */
export function findAnswer(slice: WhatIfSlice, lines: BatchLines | null, changes: Changes): Answer | undefined {
  const edits = listEdits(changes);
  const scenarios = slice.predictions?.scenarios ?? [];
  const find = (wanted: readonly string[]) => scenarios.find((one) => !one.refused && one.edits.length === wanted.length && wanted.every((edit) => one.edits.includes(edit)));
  const bySize = changes[SIZE] !== undefined && lines ? answerOfSize(lines, Number(changes[SIZE])) : undefined;
  if (bySize && edits.length === 1) return bySize;
  const exact = find(edits);
  if (exact) return answerOf(exact);
  const { [SIZE]: _, ...others } = changes;
  const pair = ["network", "ranks"].filter((key) => key in changes).map((key) => `${key}=${changes[key]}`);
  const together = pair.length > 1 ? find(pair) : undefined;
  const left = listEdits(bySize ? others : changes).filter((edit) => !together?.edits.includes(edit));
  const parts = [bySize, together && answerOf(together), ...left.map((edit) => (find([edit]) ? answerOf(find([edit])!) : undefined))].filter((one) => one !== undefined);
  const base = find([]);
  if (parts.length < left.length + (bySize ? 1 : 0) + (together ? 1 : 0) || parts.length === 0 || !base?.iteration_ns) return undefined;
  return multiply(parts, bySize?.iteration.value ? bySize.iteration.value / (1 + bySize.change) : base.iteration_ns.value);
}

function multiply(parts: readonly Answer[], before: number): Answer {
  const product = (of: (one: Answer) => number) => parts.reduce((all, one) => all * of(one), 1);
  const value = before * product(({ change }) => 1 + change);
  // Independent errors, as shares of the value.
  const half = (of: (one: PredictedValue) => number) => Math.hypot(...parts.map(({ iteration }) => of(iteration) / iteration.value));
  return {
    iteration: { value, low: value * Math.max(1 - half((one) => one.value - one.low), 0), high: value * (1 + half((one) => one.high - one.value)) },
    change: product(({ change }) => 1 + change) - 1,
    throughputChange: product(({ throughputChange }) => 1 + throughputChange) - 1,
    memoryBytes: parts.find(({ memoryBytes }) => memoryBytes)?.memoryBytes ?? null,
    boundBy: null,
    restsOn: parts.flatMap(({ restsOn }) => restsOn),
    doubt: "whether these changes add up: they were predicted one by one",
    isProduct: true,
  };
}

function answerOf(one: Prediction): Answer {
  return {
    iteration: one.iteration_ns!,
    change: one.change ?? 0,
    throughputChange: one.throughput_change ?? 0,
    memoryBytes: one.memory_bytes ?? null,
    boundBy: one.bound_by ?? null,
    restsOn: one.rests_on ?? [],
    doubt: one.doubt ?? "",
    isProduct: false,
  };
}

function answerOfSize(lines: BatchLines, size: number): Answer | undefined {
  if (!(size >= lines.least && size <= lines.most)) return undefined;
  const nearest = lines.captures.reduce((best, one) => (Math.abs(one.size - size) < Math.abs(best.size - size) ? one : best));
  const before = median(nearest.iterations);
  const iteration = valueAt(lines.time, size);
  return {
    iteration,
    change: iteration.value / before - 1,
    throughputChange: size / iteration.value / (nearest.size / before) - 1,
    memoryBytes: lines.memory && valueAt(lines.memory, size),
    boundBy: null,
    restsOn: [`captures at batch sizes ${lines.captures.map((one) => one.size).join(", ")}, compared with the nearest, ${nearest.size}`],
    doubt: size > Math.max(...lines.captures.map((one) => one.size)) ? "whether time goes on along a line beyond the sizes that were seen" : "how much iterations vary",
    isProduct: false,
  };
}
