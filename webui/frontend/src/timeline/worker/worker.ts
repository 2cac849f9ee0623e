/** The worker: fetches and inflates, so that the page's own thread only draws. */

import { searchArguments } from "./arguments";
import { findCollective } from "./collective";
import { cutTrace } from "./cut";
import { readArguments } from "./eventArguments";
import { findEvent } from "./find";
import { findLaunched } from "./launched";
import { rangesOf, Source } from "./source";
import type { Answer, Question } from "./messages";
import { sumRange } from "./sums";
import { findUnderWay } from "./underWay";

let source: Source | null = null;
let base = "";
const underWay = new Map<number, AbortController>();

self.addEventListener("message", (event: MessageEvent<Question>) => void answer(event.data));

async function answer(question: Question): Promise<void> {
  if (question.ask === "base") {
    base = question.base;
    source = new Source(rangesOf(base));
    return;
  }
  if (question.ask === "cancel") {
    underWay.get(question.id)?.abort();
    return;
  }
  const control = new AbortController();
  underWay.set(question.id, control);
  try {
    const value = await find(question, control.signal);
    const held = ArrayBuffer.isView(value) ? [value] : Object.values(value ?? {});
    const buffers = [...new Set(held.filter(ArrayBuffer.isView).map((v) => v.buffer))];
    reply({ id: question.id, value }, buffers as ArrayBuffer[]);
  } catch (error) {
    reply({ id: question.id, problem: error instanceof Error ? error.message : String(error) }, []);
  } finally {
    underWay.delete(question.id);
  }
}

function reply(message: Answer, transfer: ArrayBuffer[]): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

async function find(question: Question, signal: AbortSignal): Promise<unknown> {
  if (!source) throw new Error("no address was given");
  switch (question.ask) {
    case "fleet":
      return source.fleet();
    case "rank":
      return source.rank(question.rank);
    case "nodes":
      return source.nodes(question.rank);
    case "tile":
      return source.tile(question.rank, question.level, question.tile, signal);
    case "cut":
      return cutTrace(source, question.parts, signal);
    case "arguments": {
      const { rank, words } = question;
      return searchArguments(traceOf(rank), rank, words, BigInt((await source.header(rank)).origin_ns), signal);
    }
    case "event": {
      const { rank, name, start } = question;
      return readArguments(traceOf(rank), rank, { name, start, origin: BigInt((await source.header(rank)).origin_ns) }, signal);
    }
    case "underWay":
      return findUnderWay(source, question.rank, question.lane, question.at, signal);
    case "launched":
      return findLaunched(source, question.rank, question.lane, question.start, question.end, signal);
    case "sums":
      return sumRange(source, question.rank, question.start, question.end, signal);
    case "collective":
      return findCollective(source, question.ranks, question.rank, question.name, question.start, signal);
    case "find":
      return findEvent(source, question.rank, question.names, question.from, question.forward, signal);
    default:
      throw new Error("an unknown question");
  }
}

function traceOf(rank: number): string {
  // A page's script cannot read what a store hands out itself.
  return new URL(`../files/ranks/${rank}/trace.json.gz?through=service`, base).href;
}
