import * as v from "valibot";
import { text } from "@/api/search_state";

/** `order` is "given" where the reader swapped the sides; else the earlier capture comes first. */
const schema = v.object({ base: text, new: text, order: v.fallback(v.optional(v.literal("given")), undefined) });
export type DiffSearch = v.InferOutput<typeof schema>;
export const readDiffSearch = (search: Record<string, unknown>): DiffSearch => v.parse(schema, search);
