import * as v from "valibot";
import { choice, sort, text } from "@/api/search_state";

const list = v.object({ text, cluster: text, namespace: text, state: text, host: text, sort, capture: choice(["new"]), repeat: text, job: text });
export type RequestsSearch = v.InferOutput<typeof list>;
export const readRequestsSearch = (search: Record<string, unknown>): RequestsSearch => v.parse(list, search);

const one = v.object({ line: v.optional(text), show: choice(["all", "failed"]) });
export type RequestSearch = v.InferOutput<typeof one>;
export const readRequestSearch = (search: Record<string, unknown>): RequestSearch => v.parse(one, search);
