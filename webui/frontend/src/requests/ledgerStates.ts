// The states of a rank, with the colour, form and words of each.
import { ALONE } from "@/api/alone";

export interface LedgerState {
  id: string;
  name: string;
  color: string;
  /** How much of the cell is filled: the further, the fuller. */
  filled: number;
}

export const LEDGER_STATES: readonly LedgerState[] = [
  { id: "ASKED", name: "asked", color: "--idle", filled: 0 },
  { id: "ARMED", name: "armed", color: "--compute", filled: 0.25 },
  { id: "STARTED", name: "recording", color: "--compute", filled: 0.5 },
  { id: "WRITTEN", name: "written", color: "--compute", filled: 0.75 },
  { id: "UPLOADED", name: "uploaded", color: "--compute", filled: 1 },
  { id: "FAILED", name: "failed", color: "--communication", filled: 1 },
];

export function stateOf(id: string): LedgerState {
  return LEDGER_STATES.find((state) => state.id === id) ?? { id, name: id.toLowerCase(), color: "--idle", filled: 0 };
}

/** How many ranks are in each state, in the order above; states without a rank are left out. */
export function countStates(states: readonly string[]): { state: LedgerState; count: number }[] {
  const counts = new Map<string, number>();
  for (const id of states) counts.set(id, (counts.get(id) ?? 0) + 1);
  return LEDGER_STATES.flatMap((state) => {
    const count = counts.get(state.id);
    return count ? [{ state, count }] : [];
  });
}

/** Where a reason is explained: on this service, which nobody need leave; from a file, in the repository. */
export function explainReason(reason: string): string {
  return ALONE ? "https://github.com/fleetprof/fleetprof/blob/main/docs/reasons.md#reasons-of-a-rank" : `/docs/reasons.html#${encodeURIComponent(reason)}`;
}
