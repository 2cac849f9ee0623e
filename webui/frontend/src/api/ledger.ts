// The ledger as it changes: an event names the lines that changed, and everything else stays.
import type { LedgerChange, LedgerColumns, RequestDetail } from "./models";

/** The ledger with changed lines put in; a line beyond the end is new. Gives back a new object. */
export function withLines(ledger: LedgerColumns, lines: readonly number[], changed: LedgerColumns): LedgerColumns {
  const next = { ...ledger } as Record<keyof LedgerColumns, unknown[]>;
  for (const column of Object.keys(ledger) as (keyof LedgerColumns)[]) {
    const values: unknown[] = [...ledger[column]];
    const news: readonly unknown[] = changed[column];
    lines.forEach((line, index) => {
      values[line] = news[index];
    });
    next[column] = values;
  }
  return next as unknown as LedgerColumns;
}

/** The request after an event of its stream. */
export function withChange(detail: RequestDetail, change: LedgerChange): RequestDetail {
  return {
    ...detail,
    request: change.request,
    version: change.version,
    conditions: change.conditions,
    stages: change.stages,
    ledger: withLines(detail.ledger, change.lines, change.ledger),
  };
}
