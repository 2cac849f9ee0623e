import { describe, expect, test } from "vitest";
import type { Prediction, WhatIfSlice } from "@/api/models";
import { findAnswer, listOffers, readChanges } from "./answers";
import { fitLines, sizeNear, throughputAt, valueAt } from "./lines";

const CAPTURES = [
  { size: 8, iterations: [10.1e6, 9.9e6, 10e6, 10.4e6], memoryBytes: 3e9 },
  { size: 16, iterations: [16e6, 16.2e6, 15.9e6], memoryBytes: 5e9 },
  { size: 24, iterations: [22.3e6, 22.1e6], memoryBytes: null },
];

describe("lines", () => {
  // Of predict_size in analyzer/fleetprof_analyzer/whatif/batch_sizes.py.
  test.each<[number, number[], number[]]>([
    [8, [10034392.408408111, 9792805.74389886, 10275979.072917363], [3000000000.000001, 3000000000.000001, 3000000000.000001]],
    [12, [13056755.061138524, 12714948.834920472, 13398561.287356576], [4000000000.000001, 3980000000.000001, 4020000000.0000005]],
    [40, [34213293.6302514, 32551339.30423007, 35875247.956272736], [11000000000.0, 10927293954.781195, 11072706045.218805]],
  ])("at %d", (size, time, memory) => {
    const lines = fitLines(CAPTURES)!;
    for (const [line, expected] of [[lines.time, time], [lines.memory!, memory]] as const) {
      const found = valueAt(line, size);
      expect([found.value, found.low, found.high].map((one) => one / expected[0]!)).toEqual(expected.map((one) => expect.closeTo(one / expected[0]!, 9)));
    }
  });
  test("need two sizes", () => expect(fitLines([CAPTURES[0]!])).toBeNull());
  test("find the size of a throughput", () => {
    const lines = fitLines(CAPTURES)!;
    expect([lines.least, lines.most]).toEqual([4, 48]);
    expect(sizeNear(lines, (size) => throughputAt(lines, size), throughputAt(lines, 13) + 1e-3)).toBe(13);
  });
});

const answer = (edits: string[], value: number): Prediction =>
  ({ edits, iteration_ns: { value, low: 0.9 * value, high: 1.1 * value }, change: value / 10 - 1, throughput_change: 10 / value - 1, bound_by: { host: 1 } }) as unknown as Prediction;
const SLICE = {
  ranks: 4,
  predictions: {
    scenarios: [answer([], 10), answer(["network=2x"], 9), answer(["ranks=8"], 11), answer(["network=2x", "ranks=8"], 9.5), answer(["loader=0"], 8), { edits: ["graph=all"], refused: "no device" } as unknown as Prediction],
  },
} as unknown as WhatIfSlice;

describe("answers", () => {
  test.each([
    ["", 10, false],
    ["network=2x", 9, false],
    ["ranks=8,network=2x", 9.5, false],
    ["network=2x,loader=0", 7.2, true],
    ["network=2x,ranks=8,loader=0", 7.6, true],
    ["network=3x", undefined, undefined],
    ["graph=all", undefined, undefined],
  ])("of %s", (text, value, isProduct) => {
    const found = findAnswer(SLICE, null, readChanges(text));
    expect(found?.iteration.value).toEqual(value === undefined ? undefined : expect.closeTo(value, 9));
    expect(found?.isProduct).toBe(isProduct);
  });
  test("are offered where there is one", () => {
    const { values, refusals } = listOffers(SLICE);
    expect([...values]).toEqual([["network", ["2x"]], ["ranks", ["8"]], ["loader", ["0"]]]);
    expect([...refusals]).toEqual([["graph", "no device"]]);
  });
});
