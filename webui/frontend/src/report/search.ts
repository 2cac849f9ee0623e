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
});
export type ReportSearch = v.InferOutput<typeof schema>;
export const readReportSearch = (search: Record<string, unknown>): ReportSearch => v.parse(schema, search);

/** What every section of a report needs: which report, what its address says, and how to change that. */
export interface ReportView {
  namespace: string;
  uid: string;
  search: ReportSearch;
  change: (next: Partial<ReportSearch>) => void;
}
