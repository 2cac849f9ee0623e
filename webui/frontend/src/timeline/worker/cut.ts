/**
 * A cut of the shown part as a trace that Perfetto opens: events with their names, tracks and arrows, without arguments.
 *
 * Guarantees: made of the events themselves, never of groups; of more than MOST_EVENTS nothing is made, and what to do is
 * label.
 */

import type { RankHeader } from "../format/rank";
import { tilesWithin } from "../layout/levels";
import type { Source } from "./source";

export const MOST_EVENTS = 500_000;

/** A rank and a span of it, ns from its origin; `offset` brings its times to the fleet's axis. */
export interface CutPart {
  rank: number;
  start: number;
  end: number;
  offset: number;
}

/** The trace's bytes as JSON. Rejects with a sentence for people. */
export async function cutTrace(source: Source, parts: CutPart[], signal?: AbortSignal): Promise<Uint8Array> {
  const events: string[] = [];
  for (const part of parts) {
    const header = await source.header(part.rank);
    if (!header.whole) throw new Error(`The trace of rank ${part.rank} is too long for its single events.`);
    nameTracks(header, part.rank, events);
    const level = header.levels.length - 1;
    const [first, last] = tilesWithin(header, level, part.start, part.end);
    const rows = header.levels[level]!.tiles.rows.slice(first, last).reduce((sum, count) => sum + count, 0);
    if (events.length + rows > MOST_EVENTS)
      throw new Error(`More than ${MOST_EVENTS.toLocaleString("en")} events are in view: zoom in, or fold a rank.`);
    for (let number = first; number < last; number++) {
      const tile = await source.tile(part.rank, level, number, signal);
      // Carried rows stand in the tile in which they began too.
      for (let row = number === first ? 0 : tile.carried; row < tile.rows; row++) {
        const [start, duration] = [tile.start[row]!, tile.duration[row]!];
        if (start >= part.end || start + duration <= part.start) continue;
        const name = tile.name[row]!;
        const thread = threadOf(header, tile.lane[row]!);
        const at = `"pid":${part.rank},"tid":${thread},"ts":${micros(start + part.offset)}`;
        const cls = header.classes[header.names.cls[name]!]!;
        events.push(
          `{"ph":"X",${at},"dur":${micros(duration)},"name":${JSON.stringify(header.names.text[name])},"cat":"${cls}"}`,
        );
        const launch = tile.launch?.[row] ?? Number.NaN;
        if (Number.isNaN(launch)) continue;
        const from = threadOf(header, tile.launchLane![row]!);
        const arrow = `"id":${events.length},"name":"launch","cat":"launch","pid":${part.rank}`;
        events.push(
          `{"ph":"s",${arrow},"tid":${from},"ts":${micros(launch + part.offset)}}`,
          `{"ph":"f","bp":"e",${arrow},"tid":${thread},"ts":${micros(start + part.offset)}}`,
        );
      }
    }
  }
  return new TextEncoder().encode(`{"displayTimeUnit":"ns","traceEvents":[${events.join(",\n")}]}`);
}

/** Rows of a thread nest; those of a stream may only overlap, so each of its lanes is a track of its own. */
function threadOf(header: RankHeader, lane: number): number {
  const track = header.lanes.track[lane]!;
  return header.tracks.kind[track] === "stream" ? lane + 1 : header.lanes.track.length + track + 1;
}

function nameTracks(header: RankHeader, rank: number, events: string[]): void {
  const meta = (what: string, thread: number, name: string) =>
    `{"ph":"M","name":"${what}","pid":${rank},"tid":${thread},"args":{"name":${JSON.stringify(name)}}}`;
  events.push(meta("process_name", 0, `rank ${rank}`));
  const named = new Set<number>();
  header.lanes.track.forEach((track, lane) => {
    const thread = threadOf(header, lane);
    if (named.has(thread)) return;
    named.add(thread);
    const { kind, owner, name, main } = header.tracks;
    const label = kind[track] === "stream" ? `GPU ${owner[track]} stream ${name[track]}` : `thread ${name[track]}`;
    events.push(meta("thread_name", thread, track === main ? "main thread" : label));
  });
}

function micros(ns: number): string {
  return (ns / 1000).toFixed(3);
}
