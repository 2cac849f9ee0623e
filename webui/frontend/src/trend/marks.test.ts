import { expect, test } from "vitest";
import type { PolicyAction } from "@/api/models";
import { marksOf, namedMarks, nameOf } from "./marks";

const ACTION: PolicyAction = {
  namespace: "team-a", policy: "starved", trigger: "low", workload_kind: "Job", workload_name: "llama", action: "suppressed", reason: "Cooldown",
  message: "", headline: "", request: "", uid: "", count: 2, first_unix_ns: "1000000000", at_unix_ns: "3000000000",
};

test("marks go from the oldest to the latest, and one without a time is none", () => {
  const captured = { ...ACTION, action: "captured", first_unix_ns: "2000000000", at_unix_ns: "2000000000" };
  const found = marksOf([ACTION, { ...ACTION, at_unix_ns: null }, captured]);
  expect(found.map(({ from, at, action }) => [from, at, action.action])).toEqual([
    [2000, 2000, "captured"],
    [1000, 3000, "suppressed"],
  ]);
});

test.each([
  [ACTION, "low: Suppressed: Cooldown (2 times)"],
  [{ ...ACTION, action: "captured", reason: "", count: 1 }, "low: Captured"],
  [{ ...ACTION, trigger: "a\u202Eb" }, "a\\u202Eb: Suppressed: Cooldown (2 times)"],
])("a mark is called by its trigger and what came of it", (action, name) => {
  expect(nameOf(action)).toBe(name);
});

test("of names that would lie over each other the latest stays", () => {
  const places = [{ from: 10, at: 10, letters: 3 }, { from: 80, at: 80, letters: 3 }, { from: 95, at: 95, letters: 3 }];
  expect(namedMarks(places, 200)).toEqual([true, false, true]);
  expect(namedMarks([{ from: 195, at: 195, letters: 3 }], 200)).toEqual([false]);
  expect(namedMarks([{ from: 10, at: 10, letters: 3 }, { from: 20, at: 150, letters: 3 }], 200)).toEqual([false, true]);
});
