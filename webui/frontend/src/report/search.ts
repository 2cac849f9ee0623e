import * as v from "valibot";
import { choice, number, rank, sort, text } from "@/api/search_state";

const schema = v.object({
  rank,
  ranks: choice(["rank", "span", "idle", "compute", "exposed_communication", "lateness"]),
  measure: text,
  kernels: text,
  sort,
  sigma: number(1, 6),
  outliers: choice(["only"]),
  by: choice(["rank", "stream"]),
  kernel: text,
  whatif: text,
});
export type ReportSearch = v.InferOutput<typeof schema>;
export const readReportSearch = (search: Record<string, unknown>): ReportSearch => v.parse(schema, search);

const timeline = v.object({
  view: v.fallback(v.optional(v.string()), undefined),
  at: v.fallback(v.optional(v.pipe(v.string(), v.regex(/^\d{1,7}:-?\d{1,20}:\d{1,18}$/))), undefined),
  find: v.fallback(v.optional(v.string()), undefined),
  rank: v.fallback(v.optional(v.pipe(v.string(), v.regex(/^\d{1,7}$/))), undefined),
});
/**
 * The timeline's address has its state, as JSON. One that leads to a place has, before there is a state, that place: `at` is
 * RANK:START:DURATION, ns on the clock of the rank's trace; or `find`, a part of names to look for, with a `rank`.
 */
export const readTimelineSearch = (search: Record<string, unknown>) => v.parse(timeline, search);

/** Characters of a name that an address looks for in the timeline. */
export const SOUGHT = 100;

/** What every section of a report needs: which report, what its address says, and how to change that. */
export interface ReportView {
  namespace: string;
  uid: string;
  search: ReportSearch;
  change: (next: Partial<ReportSearch>) => void;
}
