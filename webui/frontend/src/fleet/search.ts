import * as v from "valibot";
import { sort, text } from "@/api/search_state";

const schema = v.object({ text, cluster: text, namespace: text, kind: text, gpu: text, finding: text, label: text, sort, compare: text });
export type FleetSearch = v.InferOutput<typeof schema>;
export const readFleetSearch = (search: Record<string, unknown>): FleetSearch => v.parse(schema, search);
