/** Search over the names of ranks: every event has its name in the dictionary, so all are found. Pure. */

import type { RankHeader } from "./format/rank";

export interface Found {
  text: string;
  /** Numbers of the name in the rank's dictionary: one per class. */
  names: number[];
  count: number;
  totalNs: number;
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
  return [...found.values()].toSorted((one, other) => other.totalNs - one.totalNs);
}
