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
});
export type ReportSearch = v.InferOutput<typeof schema>;
export const readReportSearch = (search: Record<string, unknown>): ReportSearch => v.parse(schema, search);

const timeline = v.object({
  view: v.fallback(v.optional(v.string()), undefined),
});
/** The timeline's address has one parameter: its state, as JSON. */
export const readTimelineSearch = (search: Record<string, unknown>) => v.parse(timeline, search);

/** What every section of a report needs: which report, what its address says, and how to change that. */
export interface ReportView {
  namespace: string;
  uid: string;
  search: ReportSearch;
  change: (next: Partial<ReportSearch>) => void;
}
