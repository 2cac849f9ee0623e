// The marks of alerts and policies on a workload's last day: which there are, what they are called, whose name has room.
import type { PolicyAction } from "@/api/models";
import { outcomeOf } from "@/policies/outcome";
import { unixMillis } from "@/units/dates";
import { visibleText } from "@/units/text";

/** Radius of a mark, px. */
export const MARK_SIZE = 6;
const LETTER_WIDTH = 7;

export interface DayMark {
  key: string;
  action: PolicyAction;
  /** Milliseconds: a capture is at one time, alike suppressions reach from the first to the last. */
  from: number;
  at: number;
}

/** The oldest first, so that the keyboard goes from left to right. */
export function marksOf(actions: readonly PolicyAction[]): DayMark[] {
  return actions
    .flatMap((action) => {
      const at = unixMillis(action.at_unix_ns);
      return at === null ? [] : [{ key: `${action.policy} ${action.trigger} ${at} ${action.reason}`, action, at, from: unixMillis(action.first_unix_ns) ?? at }];
    })
    .toSorted((a, b) => a.at - b.at);
}

/** "low: Suppressed: Cooldown (2 times)". */
export function nameOf(action: PolicyAction): string {
  return visibleText(`${action.trigger}: ${outcomeOf(action)}`);
}

/** Which marks have room for their names: from the right, because the latest matter most. `from`: where the mark begins. */
export function namedMarks(places: readonly { from: number; at: number; letters: number }[], right: number): boolean[] {
  let free = right;
  return places
    .toReversed()
    .map(({ from, at, letters }) => {
      const fits = at + MARK_SIZE + 4 + letters * LETTER_WIDTH <= free;
      free = Math.min(free, from - MARK_SIZE - 4);
      return fits;
    })
    .toReversed();
}
