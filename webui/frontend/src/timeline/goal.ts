/** A place that an address leads to before it has a state: a span of a rank, or the first event of some names. */

import type { Engine } from "./engine";
import { goToNext } from "./finding";
import type { RankHeader } from "./format/rank";
import { WHOLE, type TimelineState } from "./state";
import type { TimelineStore } from "./worker/store";

export interface Goal {
  /** undefined: the rank that is suggested. */
  rank: number | undefined;
  /** ns on the clock of the rank's trace. */
  span: { start: bigint; duration: number } | null;
  /** A part of the names that are looked for; "" for none. */
  find: string;
}

const BESIDE = 1.5;

/** The goal of an address; null where it has none. */
export function readGoal(at: string | undefined, find: string | undefined, rank: string | undefined): Goal | null {
  if (at) {
    const [of, start, duration] = at.split(":") as [string, string, string];
    return { rank: Number(of), span: { start: BigInt(start), duration: Number(duration) }, find: "" };
  }
  return find ? { rank: rank === undefined ? undefined : Number(rank), span: null, find: find.slice(0, 200) } : null;
}

/** The state with which the way to a goal begins. */
export function stateOf({ rank, find }: Goal): TimelineState {
  return { ...WHOLE, open: rank === undefined ? [] : [rank], search: find };
}

/** Goes there; the span is marked, and has room beside it. Resolves to what to tell. */
export async function goTo(engine: Engine, store: TimelineStore, rank: number, header: RankHeader, goal: Goal): Promise<string> {
  if (!goal.span) return goToNext(engine, store, new Map([[rank, header]]), rank, true);
  const start = Number(goal.span.start - BigInt(header.origin_ns)) + (engine.scene?.ranks.get(rank)?.offset ?? 0);
  const { duration } = goal.span;
  engine.change({ mark: [start, start + duration] }, true);
  engine.fit({ start: start - BESIDE * duration, end: start + (1 + BESIDE) * duration });
  return "";
}
