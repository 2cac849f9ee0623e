// What came of a trigger that fired, in the words that all pages use.
import type { PolicyAction } from "@/api/models";
import { sentenceCase } from "@/units/text";

/** "Suppressed: Cooldown (2 times)". */
export function outcomeOf({ action, reason, count }: PolicyAction): string {
  return `${sentenceCase(action)}${reason && `: ${reason}`}${count > 1 ? ` (${count} times)` : ""}`;
}
