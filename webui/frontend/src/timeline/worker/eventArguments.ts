/**
 * All arguments of one event, from the text of its rank's trace: no timeline file holds them.
 *
 * Guarantees: the text goes by piece by piece, is not kept, and is read no further than to the event; of a trace of more than
 * MOST_BYTES the rest is not read.
 */

import { ABSOLUTE_FROM_NS, MOST_BYTES, MOST_EVENT_CHARACTERS, nanoseconds, PIECE_CHARACTERS, read } from "./arguments";

/** Events of one name that are kept until the time is known that their times count from. */
const MOST_EARLY = 20_000;
/** Times of a trace and of its timeline may be apart by this. */
const ROUNDED_NS = 2;

/** The arguments of one event by their names. */
export type EventArguments = Record<string, unknown>;

/** An event of a rank; `start` is from the rank's origin, which is `origin`, ns. */
export interface WantedEvent {
  name: string;
  start: number;
  origin: bigint;
}

/** Looks through the text of a trace for the arguments of one event. */
export class EventSearch {
  readonly #wanted: WantedEvent;
  readonly #early: { at: bigint; args: string }[] = [];
  #rest = "";
  #base = 0n;
  #found: string | null = null;

  constructor(wanted: WantedEvent) {
    this.#wanted = wanted;
  }

  /** Takes the next piece; true as soon as the event was seen. */
  add(text: string): boolean {
    this.#rest += text;
    if (this.#rest.length < PIECE_CHARACTERS) return false;
    const events = this.#rest.split(/\}\s*,\s*\{/);
    this.#rest = events.pop()!;
    if (this.#rest.length > MOST_EVENT_CHARACTERS) throw new Error("The trace has an event that is too long to be read.");
    return events.some((event) => this.#look(event));
  }

  finish(): EventArguments | null {
    if (this.#found === null) this.#rest.split(/\}\s*,\s*\{/).some((event) => this.#look(event));
    // The time that others count from may stand behind them.
    this.#found ??= this.#early.find(({ at }) => this.#isAt(at))?.args ?? null;
    return this.#found === null ? null : readObject(this.#found);
  }

  #look(event: string): boolean {
    const base = /"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b/.exec(event);
    if (base) this.#base = BigInt(base[1]!);
    const args = event.indexOf('"args"');
    if (args < 0 || !event.includes(JSON.stringify(this.#wanted.name).slice(1, -1))) return false;
    const start = /"ts"\s*:\s*"?(-?[\d.]+)/.exec(event.slice(0, args)) ?? /"ts"\s*:\s*"?(-?[\d.]+)/.exec(event);
    const name = /"name"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(event.slice(0, args)) ?? /"name"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(event);
    if (!start || /"ph"\s*:\s*"M"/.test(event) || read(name?.[1]) !== this.#wanted.name) return false;
    const at = nanoseconds(start[1]!);
    if (this.#isAt(at)) this.#found = event.slice(args + 6);
    else if (this.#base === 0n && this.#early.length < MOST_EARLY) this.#early.push({ at, args: event.slice(args + 6) });
    return this.#found !== null;
  }

  #isAt(at: bigint): boolean {
    const from = at + (at < ABSOLUTE_FROM_NS ? this.#base : 0n) - this.#wanted.origin;
    return Math.abs(Number(from) - this.#wanted.start) <= ROUNDED_NS;
  }
}

/** Fetches the trace of a rank and reads the arguments of an event in it. Rejects with a sentence for people. */
export async function readArguments(url: string, rank: number, wanted: WantedEvent, signal?: AbortSignal): Promise<EventArguments | null> {
  const answer = await fetch(url, { signal: signal ?? null });
  if (answer.status === 404) throw new Error(`The trace of rank ${rank} is not stored, so its arguments cannot be read.`);
  if (!answer.ok || !answer.body) throw new Error(`The trace of rank ${rank} could not be read (${answer.status}).`);
  return readPacked(answer.body, wanted, signal);
}

/** The arguments of an event in a trace of one gzip member. */
export async function readPacked(body: ReadableStream<BufferSource>, wanted: WantedEvent, signal?: AbortSignal): Promise<EventArguments | null> {
  const search = new EventSearch(wanted);
  const decoder = new TextDecoder();
  const reader = body.pipeThrough(new DecompressionStream("gzip")).getReader();
  for (let bytes = 0; bytes < MOST_BYTES; ) {
    const next = await reader.read().catch(() => null);
    signal?.throwIfAborted();
    if (!next || next.done || search.add(decoder.decode(next.value, { stream: true }))) break;
    bytes += next.value.length;
  }
  await reader.cancel().catch(() => {});
  return search.finish();
}

/** The object that a text begins with; what is behind its end is left. */
function readObject(text: string): EventArguments {
  const from = text.indexOf("{");
  if (from < 0) return {};
  let depth = 0;
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (quoted) {
      if (character === "\\") at += 1;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === "{") depth += 1;
    else if (character === "}" && --depth === 0) return parse(text.slice(from, at + 1));
  }
  return parse(`${text.slice(from)}}`);
}

function parse(text: string): EventArguments {
  try {
    return JSON.parse(text) as EventArguments;
  } catch {
    return { "as the trace has it": text.slice(0, 2000) };
  }
}
