/** The worker: fetches and inflates, so that the page's own thread only draws. */

import { cutTrace } from "./cut";
import { findEvent } from "./find";
import { rangesOf, Source } from "./source";
import type { Answer, Question } from "./messages";

let source: Source | null = null;
const underWay = new Map<number, AbortController>();

self.addEventListener("message", (event: MessageEvent<Question>) => void answer(event.data));

async function answer(question: Question): Promise<void> {
  if (question.ask === "base") {
    source = new Source(rangesOf(question.base));
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
    case "find":
      return findEvent(source, question.rank, question.names, question.from, question.forward, signal);
    default:
      throw new Error("an unknown question");
  }
}
