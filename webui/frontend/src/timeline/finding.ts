/** Goes to what a search found: the next event of its names, or an event that was found by its arguments. */

import type { Engine } from "./engine";
import type { RankHeader } from "./format/rank";
import { searchNames } from "./search";
import type { FoundEventArguments } from "./worker/arguments";
import type { TimelineStore } from "./worker/store";

const BESIDE_FOUND = 20;
/** Times of a trace and of its timeline may be apart by this. */
const ROUNDED_NS = 2;

/** Chooses the next event of the searched names, or the one before; on the rank that is looked at, if it has any. Resolves to what to tell. */
export async function goToNext(
  engine: Engine,
  store: TimelineStore,
  headers: ReadonlyMap<number, RankHeader>,
  focus: number | undefined,
  forward: boolean,
): Promise<string> {
  const { chosen, search } = engine.state;
  const found = [...headers].map(([rank, each]) => ({ rank, names: searchNames(each, search).flatMap((one) => one.names) }));
  const place = found.find(({ rank, names }) => rank === focus && names.length) ?? found.find(({ names }) => names.length);
  if (!place) return "";
  const { rank, names } = place;
  const from = chosen?.rank === rank ? chosen.start : engine.view.start - offsetOf(engine, rank);
  const event = await store.find(rank, names, from, forward);
  if (!event) return `There is no ${forward ? "later" : "earlier"} event of such a name on rank ${rank}.`;
  engine.choose(rank, event.start, event.duration, event.name, BESIDE_FOUND);
  return "";
}

/** Chooses an event of the trace; shows its time where the timeline does not hold it. */
export async function goToEvent(
  engine: Engine,
  store: TimelineStore,
  rank: number,
  { names }: RankHeader,
  { name, start, duration }: FoundEventArguments,
): Promise<void> {
  const numbers = names.text.flatMap((text, number) => (text === name ? [number] : []));
  const event = numbers.length ? await store.find(rank, numbers, start - ROUNDED_NS, true) : null;
  if (event && event.start <= start + ROUNDED_NS) engine.choose(rank, event.start, event.duration, event.name, BESIDE_FOUND);
  else {
    const begin = start + offsetOf(engine, rank);
    engine.fit({ start: begin - BESIDE_FOUND * duration, end: begin + (1 + BESIDE_FOUND) * duration });
  }
}

function offsetOf(engine: Engine, rank: number): number {
  return engine.scene?.ranks.get(rank)?.offset ?? 0;
}
