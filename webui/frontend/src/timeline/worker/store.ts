/** The page's side of the worker: asks for what a view needs, keeps what came, and says when there is more to draw. */

import type { Fleet } from "../format/fleet";
import type { NodeColumns, RankHeader, Tile } from "../format/rank";
import type { FoundArguments } from "./arguments";
import type { Collective } from "./collective";
import type { CutPart } from "./cut";
import type { EventArguments } from "./eventArguments";
import type { FoundEvent } from "./find";
import type { Answer, Question } from "./messages";
import type { RangeSums } from "./sums";
import type { PlacedEvent } from "./underWay";
import { TileCache } from "./tiles";

type Outcome<T> = { value: T; problem?: undefined } | { problem: string; value?: undefined };
type Asking = Question extends infer Q ? (Q extends { id: number } ? Omit<Q, "id"> : never) : never;

export class TimelineStore {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly #tiles = new TileCache();
  readonly #tileRequests = new Map<string, number>();
  readonly #problems = new Map<string, string>();
  readonly #ranks = new Map<number, Outcome<RankHeader> | null>();
  readonly #nodes = new Map<number, Outcome<NodeColumns> | null>();
  readonly #changed: () => void;
  #next = 0;
  fleet: Outcome<Fleet> | null = null;

  /** `changed` is called after each answer. */
  constructor(base: string, changed: () => void) {
    this.#changed = changed;
    this.#worker = new Worker(new URL("worker.ts", import.meta.url), { type: "module" });
    this.#worker.addEventListener("message", (event: MessageEvent<Answer>) => {
      this.#waiting.get(event.data.id)?.(event.data);
      this.#waiting.delete(event.data.id);
      this.#changed();
    });
    this.#send({ ask: "base", base: new URL(base, location.href).href });
    this.#ask({ ask: "fleet" }, (answer) => (this.fleet = outcome<Fleet>(answer)));
  }

  close(): void {
    this.#worker.terminate();
  }

  /** What is known of a rank's file; asked for at the first call. */
  rank(rank: number): Outcome<RankHeader> | null {
    return this.#once(this.#ranks, rank, { ask: "rank", rank });
  }

  /** A rank's tree; asked for at the first call. */
  nodes(rank: number): Outcome<NodeColumns> | null {
    return this.#once(this.#nodes, rank, { ask: "nodes", rank });
  }

  /** A tile if it is here; nothing is asked for. */
  tile(rank: number, level: number, tile: number): Tile | undefined {
    return this.#tiles.get(keyOf(rank, level, tile));
  }

  problemOf(rank: number, level: number, tile: number): string {
    return this.#problems.get(keyOf(rank, level, tile)) ?? "";
  }

  /** Asks for the tiles that are wanted now, and gives up those that were wanted before. */
  want(wanted: { rank: number; level: number; tile: number }[]): void {
    const keys = new Set(wanted.map((one) => keyOf(one.rank, one.level, one.tile)));
    for (const [key, id] of this.#tileRequests)
      if (!keys.has(key)) {
        this.#send({ ask: "cancel", id });
        this.#waiting.delete(id);
        this.#tileRequests.delete(key);
      }
    for (const one of wanted) {
      const key = keyOf(one.rank, one.level, one.tile);
      if (this.#tileRequests.has(key) || this.#problems.has(key) || this.#tiles.get(key)) continue;
      const id = this.#ask({ ask: "tile", ...one }, (answer) => {
        this.#tileRequests.delete(key);
        if (answer.problem === undefined) this.#tiles.set(key, answer.value as Tile);
        else this.#problems.set(key, answer.problem);
      });
      this.#tileRequests.set(key, id);
    }
  }

  /** The shown parts as a trace for Perfetto. Rejects with a sentence for people. */
  cut(parts: CutPart[]): Promise<Uint8Array<ArrayBuffer>> {
    return this.#promise({ ask: "cut", parts });
  }

  /** The next event of these names, or the one before; null where there is none. */
  find(rank: number, names: number[], from: number, forward: boolean): Promise<FoundEvent | null> {
    return this.#promise({ ask: "find", rank, names, from, forward });
  }

  /** Events of a rank's trace by their arguments, and how to give that up. The answer rejects with a sentence for people. */
  searchArguments(rank: number, words: string): { answer: Promise<FoundArguments>; cancel: () => void } {
    const id = this.#next;
    const answer = this.#promise<FoundArguments>({ ask: "arguments", rank, words });
    return { answer, cancel: () => this.#send({ ask: "cancel", id }) };
  }

  /** The events of a thread that were under way at a time, outermost first. Rejects with a sentence for people. */
  underWay(rank: number, lane: number, at: number): Promise<PlacedEvent[]> {
    return this.#promise({ ask: "underWay", rank, lane, at });
  }

  /** The device's work that an event of a thread launched. Rejects with a sentence for people. */
  launched(rank: number, lane: number, start: number, end: number): Promise<PlacedEvent[]> {
    return this.#promise({ ask: "launched", rank, lane, start, end });
  }

  /** What a rank ran within a span, ns from its origin. Rejects with a sentence for people. */
  sums(rank: number, start: number, end: number): Promise<RangeSums> {
    return this.#promise({ ask: "sums", rank, start, end });
  }

  /** A collective on these ranks; null where its event belongs to no iteration. */
  collective(rank: number, name: number, start: number, ranks: readonly number[]): Promise<Collective | null> {
    return this.#promise({ ask: "collective", rank, ranks, name, start });
  }

  /** The arguments of an event, from the trace, null where it has no such event; and how to give that up. */
  eventArguments(rank: number, name: string, start: number): { answer: Promise<EventArguments | null>; cancel: () => void } {
    const id = this.#next;
    const answer = this.#promise<EventArguments | null>({ ask: "event", rank, name, start });
    return { answer, cancel: () => this.#send({ ask: "cancel", id }) };
  }

  #promise<T>(asking: Asking): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#ask(asking, (answer) =>
        answer.problem === undefined ? resolve(answer.value as T) : reject(new Error(answer.problem)),
      );
    });
  }

  #once<T>(known: Map<number, Outcome<T> | null>, rank: number, asking: Asking): Outcome<T> | null {
    if (!known.has(rank)) {
      known.set(rank, null);
      this.#ask(asking, (answer) => known.set(rank, outcome<T>(answer)));
    }
    return known.get(rank) ?? null;
  }

  #ask(asking: Asking, take: (answer: Answer) => void): number {
    const id = this.#next++;
    this.#waiting.set(id, take);
    this.#send({ ...asking, id } as Question);
    return id;
  }

  #send(question: Question): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    this.#worker.postMessage(question);
  }
}

function keyOf(rank: number, level: number, tile: number): string {
  return `${rank}/${level}/${tile}`;
}

function outcome<T>(answer: Answer): Outcome<T> {
  return answer.problem === undefined ? { value: answer.value as T } : { problem: answer.problem };
}
