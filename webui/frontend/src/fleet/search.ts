import * as v from "valibot";
import { sort, text } from "@/api/search_state";

const schema = v.object({ text, cluster: text, namespace: text, kind: text, gpu: text, finding: text, label: text, sort, compare: text });
export type FleetSearch = v.InferOutput<typeof schema>;
export const readFleetSearch = (search: Record<string, unknown>): FleetSearch => v.parse(schema, search);

const losses = v.object({ by: text, least: text });
export type LossesSearch = v.InferOutput<typeof losses>;
export const readLossesSearch = (search: Record<string, unknown>): LossesSearch => v.parse(losses, search);
