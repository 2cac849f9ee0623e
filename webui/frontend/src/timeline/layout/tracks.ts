/** Tracks of open ranks by their keys: streams, threads and counters, which the reader may hide or pin. Pure. */

import type { RankHeader } from "../format/rank";

/** The key of a stream or thread, by its number in the rank's file. */
export function trackKey(rank: number, track: number): string {
  return `${rank}.t${track}`;
}

/** The key of a counter, by its name. */
export function counterKey(rank: number, name: string): string {
  return `${rank}.${name.replaceAll(/\W/g, "_")}`;
}

export function trackLabel(header: RankHeader, track: number): string {
  const { kind, owner, name, main } = header.tracks;
  if (kind[track] === "stream") return `GPU ${owner[track]} · stream ${name[track]}`;
  return track === main ? "main thread" : `thread ${name[track]}`;
}
