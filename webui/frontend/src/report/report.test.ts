import { expect, test } from "vitest";
import type { KernelRow, RankColumns } from "@/api/models";
import { evidenceOf } from "./evidence";
import { longestDeviation, outlyingRanks, standsOut } from "./tables/kernelOutliers";
import { filePath } from "./perfetto";
import { orderRows, rankRows } from "./ranks/rankRows";

test.each([
  ["stragglers", "stragglers"],
  ["totals.time_ns.exposed_communication", "ranks"],
  ["totals.idle_ns.data_loading", "ranks"],
  ["ranks.stages.host", "stages"],
  ["ranks.launches.graph_saving_ns", "launches"],
  ["capture_cost", "cost"],
])("a finding that rests on %s is shown at #%s", (measure, id) => {
  expect(evidenceOf(measure).id).toBe(id);
});

function kernel(deviations: number[], max: number, count = 10): KernelRow {
  const statistics = {
    name: "gemm", work_class: "compute" as const, count, total_ns: 1000, mean_ns: 100, min_ns: 90, max_ns: max,
    deviation_ns: 10, p50_ns: 100, p90_ns: 110, p99_ns: 120, ranks: 2, histogram: { from_ns: [], counts: [] },
  };
  const outliers = deviations.map((value, rank) => ({ rank, name: "gemm", mean_ns: 1, others_mean_ns: 1, deviations: value, count: 1 }));
  return { statistics, outliers };
}

test("ranks stand out from so many deviations on, in both directions", () => {
  expect(outlyingRanks(kernel([2, -4, 5], 100), 4).map(({ rank }) => rank)).toEqual([1, 2]);
});

test.each([
  [kernel([], 125), 2, true],
  [kernel([], 125), 3, false],
  [kernel([6], 100), 6, true],
  [kernel([], 125, 1), 1, false],
])("a kernel stands out by its longest launch or on a rank", (row, sigma, wanted) => {
  expect(standsOut(row, sigma)).toBe(wanted);
});

test("one launch has no deviation", () => {
  expect(longestDeviation(kernel([], 125))).toBe(2.5);
  expect(longestDeviation(kernel([], 125, 1))).toBeNull();
});

test("ranks are ordered by number, or the most of a measure first, unknown values last", () => {
  const columns = {
    rank: [0, 1, 2], source: [], kind: [], host_name: [], device_name: [], iteration_count: [],
    measures: { span: [1, 1, 1], idle: [5, null, 9] }, units: {},
  } as RankColumns;
  const order = (by: string) => orderRows(rankRows(columns), columns, by).map(({ rank }) => rank);
  expect([order("rank"), order("idle"), order("absent")]).toEqual([[0, 1, 2], [2, 0, 1], [0, 1, 2]]);
});

test("each part of a file's name is escaped", () => {
  expect(filePath("team-a", "u1", "ranks/0/trace.json.gz")).toBe("/reports/team-a/u1/files/ranks/0/trace.json.gz");
  expect(filePath("team-a", "u1", "a b?#")).toBe("/reports/team-a/u1/files/a%20b%3F%23");
});
