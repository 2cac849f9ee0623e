/**
 * Search in the arguments of a trace's own events (shapes, streams, correlations, bytes, groups), which no timeline file holds.
 *
 * Guarantees: the trace's text goes by piece by piece, and is not kept; what is found first is kept, all of it is counted;
 * a trace of more than MOST_BYTES, or one that is cut or damaged, is searched that far, and the answer says so.
 */

export const MOST_FOUND = 50;
export const MOST_BYTES = 4 * 2 ** 30;
export const MOST_EVENT_CHARACTERS = 4 << 20;
export const PIECE_CHARACTERS = 1 << 20;
const BEFORE = 30;
const MOST_SHOWN = 160;
export const ABSOLUTE_FROM_NS = 10n ** 18n;

export interface FoundArguments {
  /** All events whose arguments have the words. */
  count: number;
  /** The first ones, in the order of the file. */
  events: FoundEventArguments[];
  /** Whether all of the trace was searched. */
  whole: boolean;
}

export interface FoundEventArguments {
  name: string;
  /** From the rank's origin, ns. */
  start: number;
  duration: number;
  /** The arguments around the words. */
  text: string;
}

/** A pattern for the words in JSON: "stream 7" finds `"stream": 7`, not `"stream": 70`. Null for no words. */
export function patternOf(words: string): RegExp | null {
  const parts = words.match(/[\p{L}\p{N}_.]+|[^\s"':,]/gu);
  if (!parts) return null;
  const body = parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)).join(String.raw`[\s"':,]*`);
  const before = /^\d/.test(parts[0]!) ? String.raw`(?<![\d.])` : "";
  const behind = /\d$/.test(parts.at(-1)!) ? String.raw`(?![\d]|\.\d)` : "";
  return new RegExp(before + body + behind, "iu");
}

/** Looks through the text of a trace as it comes. */
export class ArgumentSearch {
  readonly #pattern: RegExp;
  readonly #found: { name: string; at: string; duration: string; text: string }[] = [];
  #count = 0;
  #rest = "";
  #base = 0n;

  constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }

  add(text: string): void {
    this.#rest += text;
    if (this.#rest.length < PIECE_CHARACTERS) return;
    // Events stand in a list, and hold no list of objects themselves: what lies between two of them ends one.
    const events = this.#rest.split(/\}\s*,\s*\{/);
    this.#rest = events.pop()!;
    if (this.#rest.length > MOST_EVENT_CHARACTERS) throw new Error("The trace has an event that is too long to be searched.");
    for (const event of events) this.#look(event);
  }

  /** What was found; `origin` is the rank's, ns. */
  finish(origin: bigint, whole: boolean): FoundArguments {
    this.#readBase(this.#rest);
    // What follows the list of events is no argument of the last one.
    for (const event of this.#rest.split(/\}\s*,\s*\{/)) this.#look(event.replace(/\}\s*\}\s*\][^]*$/, ""));
    this.#rest = "";
    const events = this.#found.map(({ name, at, duration, text }) => {
      const start = nanoseconds(at);
      return { name, start: Number(start + (start < ABSOLUTE_FROM_NS ? this.#base : 0n) - origin), duration: Number(nanoseconds(duration)), text };
    });
    return { count: this.#count, events, whole };
  }

  #look(event: string): void {
    const at = event.indexOf('"args"');
    if (at < 0 || event.includes("baseTimeNanoseconds")) this.#readBase(event);
    if (at < 0) return;
    const args = event.slice(at + 6);
    const match = this.#pattern.exec(args);
    // Names of threads and processes are arguments of events that take no time.
    if (!match || /"ph"\s*:\s*"M"/.test(event)) return;
    // Most writers put the arguments last, and names stand in arguments too.
    const head = event.slice(0, at);
    const start = /"ts"\s*:\s*"?(-?[\d.]+)/.exec(head) ?? /"ts"\s*:\s*"?(-?[\d.]+)/.exec(event);
    if (!start) return;
    this.#count += 1;
    if (this.#found.length >= MOST_FOUND) return;
    const name = (/.*"name"\s*:\s*("(?:[^"\\]|\\.)*")/s.exec(head) ?? /"name"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(event))?.[1];
    const duration = /"dur"\s*:\s*"?(\d[\d.]*)/.exec(head) ?? /"dur"\s*:\s*"?(\d[\d.]*)/.exec(event);
    this.#found.push({ name: read(name), at: start[1]!, duration: duration?.[1] ?? "0", text: around(args, match.index) });
  }

  #readBase(text: string): void {
    const found = /"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b/.exec(text);
    if (found) this.#base = BigInt(found[1]!);
  }
}

/** Fetches the trace of a rank and searches it. Rejects with a sentence for people. */
export async function searchArguments(url: string, rank: number, words: string, origin: bigint, signal?: AbortSignal): Promise<FoundArguments> {
  const pattern = patternOf(words);
  if (!pattern) return { count: 0, events: [], whole: true };
  const answer = await fetch(url, { signal: signal ?? null });
  if (answer.status === 404) throw new Error(`The trace of rank ${rank} is not stored, so its arguments cannot be searched.`);
  if (!answer.ok || !answer.body) throw new Error(`The trace of rank ${rank} could not be read (${answer.status}).`);
  return searchPacked(answer.body, pattern, origin, signal);
}

/** Searches a trace of one gzip member. */
export async function searchPacked(body: ReadableStream<BufferSource>, pattern: RegExp, origin: bigint, signal?: AbortSignal): Promise<FoundArguments> {
  const search = new ArgumentSearch(pattern);
  const decoder = new TextDecoder();
  const reader = body.pipeThrough(new DecompressionStream("gzip")).getReader();
  for (let bytes = 0; bytes < MOST_BYTES; ) {
    const next = await reader.read().catch(() => null);
    signal?.throwIfAborted();
    if (!next) break;
    search.add(decoder.decode(next.value, { stream: !next.done }));
    if (next.done) return search.finish(origin, true);
    bytes += next.value.length;
  }
  await reader.cancel().catch(() => {});
  return search.finish(origin, false);
}

/** µs with decimals, as text, in ns. */
export function nanoseconds(text: string): bigint {
  const [whole = "0", decimals = ""] = text.replace("-", "").split(".");
  const value = BigInt(whole || 0) * 1000n + BigInt(decimals.slice(0, 3).padEnd(3, "0"));
  return text.startsWith("-") ? -value : value;
}

export function read(text: string | undefined): string {
  try {
    return String(JSON.parse(text ?? '""'));
  } catch {
    return text ?? "";
  }
}

/** The arguments from shortly before the match on. */
function around(args: string, match: number): string {
  const from = Math.max(0, match - BEFORE);
  const plain = args.slice(from, from + 2 * MOST_SHOWN).replaceAll(/\s+/g, " ").replace(/^\s*:?\s*\{\s*/, "").replace(/[\s}]+$/, "");
  return `${from > 0 ? "…" : ""}${plain.slice(0, MOST_SHOWN)}`;
}
