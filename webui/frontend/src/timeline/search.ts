/**
 * Search over the names of ranks, and over the lines of code that the report found in samples. Pure.
 *
 * Every event has its name in its rank's dictionary, so all are found, also those that no view shows.
 */

import type { RankHeader } from "./format/rank";

export interface Found {
  text: string;
  /** Numbers of the name in the rank's dictionary: one per class. */
  names: number[];
  count: number;
  totalNs: number;
}

/** A name on all searched ranks; `ranks` in the order in which they were given. */
export interface FoundName {
  text: string;
  count: number;
  totalNs: number;
  ranks: { rank: number; count: number }[];
}

/** A line of code from the samples of a rank's main thread. Samples are counts: the line has no place in time. */
export interface SampledLine {
  file: string;
  line: number;
  function: string;
  samples: number;
  ofSamples: number;
  /** Whose samples; empty for those of all ranks. */
  ranks: number[];
  /** What the report says of it. */
  sentence: string;
}

const MOST = 200;
const lowered = new WeakMap<RankHeader, string[]>();

/** Names that contain the words, whatever their case, the longest total first. Empty for no words. */
export function searchNames(header: RankHeader, words: string): Found[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const { text, count, total_ns: total } = header.names;
  let lower = lowered.get(header);
  if (!lower) lowered.set(header, (lower = text.map((name) => name.toLowerCase())));
  const found = new Map<string, Found>();
  for (let name = 0; name < lower.length; name++) {
    if (!lower[name]!.includes(wanted)) continue;
    const known = found.get(text[name]!);
    if (known) {
      known.names.push(name);
      known.count += count[name]!;
      known.totalNs += total[name]!;
    } else if (found.size < MOST) {
      found.set(text[name]!, { text: text[name]!, names: [name], count: count[name]!, totalNs: total[name]! });
    }
  }
  return longestFirst([...found.values()]);
}

/** The same over several ranks. */
export function searchRanks(headers: ReadonlyMap<number, RankHeader>, words: string): FoundName[] {
  const found = new Map<string, FoundName>();
  for (const [rank, header] of headers)
    for (const { text, count, totalNs } of searchNames(header, words)) {
      const known = found.get(text) ?? { text, count: 0, totalNs: 0, ranks: [] };
      known.count += count;
      known.totalNs += totalNs;
      known.ranks.push({ rank, count });
      found.set(text, known);
    }
  return longestFirst([...found.values()]);
}

/** The sampled lines whose file, line (`train.py:31`) or function contains the words. */
export function searchLines(lines: readonly SampledLine[], words: string): SampledLine[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  return lines.filter((one) => `${one.file}:${one.line} ${one.function}`.toLowerCase().includes(wanted));
}

/** How many events of a rank have a name, whatever their class. */
export function countNamed({ names }: RankHeader, text: string): number {
  return names.text.reduce((sum, each, name) => (each === text ? sum + names.count[name]! : sum), 0);
}

function longestFirst<T extends { totalNs: number }>(found: T[]): T[] {
  return found.toSorted((one, other) => other.totalNs - one.totalNs);
}
