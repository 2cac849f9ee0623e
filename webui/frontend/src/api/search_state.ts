// The forms of search parameters. What cannot be read is left out: an old or damaged link still opens its page.
import * as v from "valibot";

export const text = v.fallback(v.optional(v.pipe(v.string(), v.maxLength(512))), undefined);
export const rank = v.fallback(
  v.optional(v.pipe(v.union([v.string(), v.number()]), v.transform(Number), v.integer(), v.minValue(0), v.maxValue(2 ** 31 - 1))),
  undefined,
);
export const sort = v.fallback(v.optional(v.pipe(v.string(), v.regex(/^-?[a-z_0-9]{1,31}$/))), undefined);
export const number = (low: number, high: number) =>
  v.fallback(v.optional(v.pipe(v.union([v.string(), v.number()]), v.transform(Number), v.minValue(low), v.maxValue(high))), undefined);
export const choice = <const Choices extends readonly [string, ...string[]]>(choices: Choices) =>
  v.fallback(v.optional(v.picklist(choices)), undefined);
