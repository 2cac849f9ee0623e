/**
 * The same collective on other ranks: the event that is as many-th of its name in the iteration of the same number.
 *
 * Guarantees: of at most MOST_RANKS ranks; a rank that has no such event is named as one without.
 */

import type { RankHeader } from "../format/rank";
import type { EventArguments } from "./eventArguments";
import { rowsWithin } from "./rows";
import type { Source } from "./source";

export const MOST_RANKS = 16;

export interface RankEvent {
  rank: number;
  name: number;
  start: number;
  duration: number;
  /** What brings its times to the fleet's axis. */
  header: Pick<RankHeader, "rank" | "time_origin" | "origin_ns" | "iterations">;
}

export interface Collective {
  /** The iteration's number, and which of its name the event is in it, from 1. */
  iteration: number;
  position: number;
  events: RankEvent[];
  missing: number[];
}

/** It on the ranks in their order, the chosen one among them; null for an event outside of iterations. */
export async function findCollective(
  source: Source,
  ranks: readonly number[],
  rank: number,
  name: number,
  start: number,
  signal?: AbortSignal,
): Promise<Collective | null> {
  const header = await source.header(rank);
  const text = header.names.text[name]!;
  const { start_ns: starts, duration_ns: durations, index } = header.iterations;
  const at = starts.findLastIndex((begin, place) => begin <= start && start < begin + durations[place]!);
  if (at < 0) return null;
  const position = (await listNamed(source, header, rank, text, at, signal)).findIndex((one) => one.start === start);
  if (position < 0) return null;
  const events: RankEvent[] = [];
  const missing: number[] = [];
  for (const other of ranks.slice(0, MOST_RANKS)) {
    const its = await source.header(other);
    const same = its.iterations.index.indexOf(index[at]!);
    const found = same < 0 ? undefined : (await listNamed(source, its, other, text, same, signal))[position];
    if (found) events.push({ ...found, rank: other, header: { rank: its.rank, time_origin: its.time_origin, origin_ns: its.origin_ns, iterations: its.iterations } });
    else missing.push(other);
  }
  return { iteration: index[at]!, position: position + 1, events, missing };
}

/** The events of a name that begin in an iteration, by their start. */
async function listNamed(source: Source, header: RankHeader, rank: number, text: string, iteration: number, signal?: AbortSignal) {
  const begin = header.iterations.start_ns[iteration]!;
  const end = begin + header.iterations.duration_ns[iteration]!;
  const numbers = new Set(header.names.text.flatMap((one, number) => (one === text ? [number] : [])));
  const found: { name: number; start: number; duration: number }[] = [];
  for await (const { tile, row } of rowsWithin(source, rank, begin, end, signal))
    if (numbers.has(tile.name[row]!) && tile.start[row]! >= begin)
      found.push({ name: tile.name[row]!, start: tile.start[row]!, duration: tile.duration[row]! });
  return found.toSorted((one, other) => one.start - other.start);
}

/**
 * The rank that the others of its group waited for: who comes last is in a collective for the shortest time, whatever the
 * clocks say. null where all were in it for about as long.
 */
export function findLast(events: readonly Pick<RankEvent, "rank" | "duration">[]): number | null {
  const byDuration = events.toSorted((one, other) => one.duration - other.duration);
  const [shortest] = byDuration;
  const middle = byDuration[byDuration.length >> 1];
  return events.length > 1 && shortest!.duration < 0.8 * middle!.duration ? shortest!.rank : null;
}

/** The ranks of a collective's process group as its arguments tell them; null where they do not, or not all of them. */
export function groupOf(found: EventArguments | null): number[] | null {
  const words = found?.["Process Group Ranks"];
  try {
    const ranks: unknown = typeof words === "string" ? JSON.parse(words) : words;
    return Array.isArray(ranks) && ranks.length > 0 && ranks.every((one) => Number.isInteger(one)) ? (ranks as number[]) : null;
  } catch {
    return null;
  }
}
