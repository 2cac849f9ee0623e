import * as v from "valibot";
import { text } from "@/api/search_state";

const schema = v.object({ base: text, new: text });
export type DiffSearch = v.InferOutput<typeof schema>;
export const readDiffSearch = (search: Record<string, unknown>): DiffSearch => v.parse(schema, search);
