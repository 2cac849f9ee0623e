import * as v from "valibot";
import { text } from "@/api/search_state";

/** `compare` is the report to compare another capture with: NAMESPACE/UID. */
const schema = v.object({ compare: text });
export type WorkloadSearch = v.InferOutput<typeof schema>;
export const readWorkloadSearch = (search: Record<string, unknown>): WorkloadSearch => v.parse(schema, search);
