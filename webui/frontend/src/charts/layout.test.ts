import { describe, expect, test } from "vitest";
import { clipLimits, countInBins, foldColumns, isFarAbove, labelTicks, pieces, scalePosition, sparkPoints, stack, violinOf } from "./layout";

describe("stacked bars", () => {
  test("parts follow each other, on the scale of the longest row", () => {
    expect(stack([[1, 0, 1], [3, 1, 0]])).toEqual([
      { row: 0, part: 0, from: 0, to: 0.25 },
      { row: 0, part: 2, from: 0.25, to: 0.5 },
      { row: 1, part: 0, from: 0, to: 0.75 },
      { row: 1, part: 1, from: 0.75, to: 1 },
    ]);
  });
  test("no rows make no marks", () => {
    expect(stack([])).toEqual([]);
  });
});

describe("colour scales", () => {
  test("the limits are the 1st and 99th percentile of what is known", () => {
    const values = [null, ...Array.from({ length: 101 }, (_, index) => index), 10_000];
    expect(clipLimits(values)).toEqual([1, 100]);
  });
  test.each([
    [[null, null], [0, 1]],
    [[5, 5, 5], [5, 6]],
  ])("%j has the limits %j", (values, limits) => {
    expect(clipLimits(values)).toEqual(limits);
  });
  test.each([
    [5, { at: 0.5, clipped: false }],
    [20, { at: 1, clipped: true }],
    [-1, { at: 0, clipped: true }],
  ])("%s is at %j of 0 to 10", (value, position) => {
    expect(scalePosition(value, [0, 10])).toEqual(position);
  });
  test("half a scale above its end is far above it", () => {
    expect([15, 16].map((value) => isFarAbove(value, [0, 10]))).toEqual([false, true]);
  });
});

describe("folded columns", () => {
  test("each fold keeps its worst cell: one late rank of a thousand stays", () => {
    const row = Array.from({ length: 1000 }, (_, rank) => (rank === 637 ? 9 : 1));
    const { starts, values } = foldColumns([row], 100);
    expect(starts).toHaveLength(100);
    expect(values[0]?.filter((value) => value === 9)).toHaveLength(1);
    expect(starts[values[0]?.indexOf(9) ?? -1]).toBe(630);
  });
  test("fewer columns than pixels stay as they are", () => {
    expect(foldColumns([[1, null, 3]], 100)).toEqual({ starts: [0, 1, 2], values: [[1, null, 3]] });
  });
});

test("a sparkline leaves gaps where nothing is known, and puts one value in the middle", () => {
  expect(sparkPoints([1, null, 3], 10, 4)).toEqual([[0, 4], null, [10, 0]]);
  expect(sparkPoints([7], 10, 4)).toEqual([[5, 2]]);
});

test("a line is not drawn over missing samples", () => {
  expect(pieces({ at: [0, 1, 2, 3], values: [5, null, 6, 7] })).toEqual([[[0, 5]], [[2, 6], [3, 7]]]);
});

test("a violin is as wide as its bins are full, the same on both sides", () => {
  expect(violinOf([1, 4], 9)).toEqual([[0, 9], [0.25, 7], [0.75, 1], [1, 9], [0.75, 17], [0.25, 11]]);
});

test("of ticks that read alike the first is labelled", () => {
  const say = (tick: number) => `${Math.round(tick)} bytes`;
  expect(labelTicks([0, 0.6, 1, 1.4, 2], say)).toEqual([
    { tick: 0, label: "0 bytes" },
    { tick: 0.6, label: "1 bytes" },
    { tick: 2, label: "2 bytes" },
  ]);
});

test.each([
  [[0, 1, 2, 4], 4, { counts: [1, 1, 1, 1], from: 0, to: 4 }],
  [[3, 3], 4, { counts: [2], from: 3, to: 3 }],
  [[], 4, { counts: [0], from: 0, to: 0 }],
])("%j in %i bins", (values, bins, wanted) => {
  expect(countInBins(values, bins)).toEqual(wanted);
});
