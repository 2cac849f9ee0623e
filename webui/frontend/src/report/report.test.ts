import { expect, test } from "vitest";
import type { KernelRow, RankSlice } from "@/api/models";
import { evidenceOf } from "./evidence";
import { formatDeviations, isFar, longestDeviation, outlyingRanks, outlyingStreams, standsOut } from "./tables/kernelOutliers";
import { filePath } from "./perfetto";
import { firstMeasures } from "./ranks/firstMeasures";
import { orderRows, rankRows } from "./ranks/rankRows";
import { chooseSeries } from "./ranks/sampleSeries";
import { findKernels, kernelTable } from "./tables/kernelRows";

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
  const statistics: KernelRow["statistics"] = {
    name: "gemm", work_class: "compute", count, total_ns: 1000, mean_ns: 100, min_ns: 90, max_ns: max,
    deviation_ns: 10, p25_ns: 95, p50_ns: 100, p75_ns: 105, p90_ns: 110, p99_ns: 120, ranks: 2, histogram: { from_ns: [], counts: [] },
    streams: [],
  };
  const outliers = deviations.map((value, rank) => ({ rank, name: "gemm", mean_ns: 1, others_mean_ns: 1, deviations: value, count: 1 }));
  return { spoken_name: "gemm", statistics, outliers, bars: [] };
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
  expect(standsOut(row, sigma, "rank")).toBe(wanted);
});

test.each([
  [130, 100, 4, 3, true],
  [70, 100, -4, 3, true],
  [130, 100, 4, 4.5, false],
  [104, 100, 40, 3, false], // below 5 %
  [130, null, null, 1, false], // not compared
])("a mean of %d beside %s, %s deviations away, is far from %d on: %s", (mean_ns, others_mean_ns, deviations, sigma, wanted) => {
  expect(isFar({ mean_ns, others_mean_ns, deviations }, sigma)).toBe(wanted);
});

test("a kernel stands out by one of its streams where streams are compared", () => {
  const row = kernel([], 100);
  const stream = { ...row.statistics, p25_ns: 90, p75_ns: 110, others_mean_ns: 50, deviations: 5 };
  row.statistics.streams = [
    { ...stream, stream: "20" },
    { ...stream, stream: "7", others_mean_ns: 100, deviations: 0.2 },
  ];
  expect(outlyingStreams(row, 3).map((one) => one.stream)).toEqual(["20"]);
  expect([standsOut(row, 3, "stream"), standsOut(row, 6, "stream"), standsOut(row, 3, "rank")]).toEqual([true, false, false]);
});

test("a distance says its direction, and no more digits than mean something", () => {
  expect([3.14, -2, 500].map(formatDeviations)).toEqual(["▲ 3.1 σ", "▼ 2.0 σ", "▲ > 99 σ"]);
});

test("one launch has no deviation", () => {
  expect(longestDeviation(kernel([], 125))).toBe(2.5);
  expect(longestDeviation(kernel([], 125, 1))).toBeNull();
});

test("ranks are ordered by number, or the most of a measure first, unknown values last", () => {
  const columns = {
    cut: 0, rank: [0, 1, 2], source: [], kind: [], host_name: [], device_name: [], iteration_count: [],
    measures: { span: [1, 1, 1], idle: [5, null, 9] }, units: {},
  } as RankSlice;
  const order = (by: string) => orderRows(rankRows(columns), columns, by).map(({ rank }) => rank);
  expect([order("rank"), order("idle"), order("absent")]).toEqual([[0, 1, 2], [2, 0, 1], [0, 1, 2]]);
});

function named(name: string, total_ns: number): KernelRow {
  const row = kernel([4], 100);
  return { ...row, statistics: { ...row.statistics, name, total_ns } };
}

const KERNELS = { cut: 0, rows: [named("gemm", 5), named("NCCL", 9), named("relu", 5)], classes: [], total_ns: 20, asked_classes: [] };

test("kernels are sorted and searched; equal ones stay in their order", () => {
  const names = (text: string, sort: string) => findKernels(KERNELS.rows, text, sort).map(({ statistics }) => statistics.name);
  expect(names("", "-total")).toEqual(["NCCL", "gemm", "relu"]);
  expect(names("", "name")).toEqual(["gemm", "NCCL", "relu"]);
  expect(names("cc", "-total")).toEqual(["NCCL"]);
});

test("the kernels of one rank are its own, with the outliers of all", () => {
  const { streams: _s, histogram: _h, ranks: _r, ...own } = named("gemm", 3).statistics;
  const work = [{ ...own, density: [] }, { ...own, name: "(all)", total_ns: 8, density: [] }];
  const table = kernelTable(KERNELS, { cut: 0, ranks: [{ rank: 1, work }] }, 1);
  expect(table?.rows.map(({ statistics, outliers }) => [statistics.name, statistics.total_ns, outliers.length])).toEqual([["gemm", 3, 1]]);
  expect([table?.totalNs, kernelTable(KERNELS, undefined, 1)]).toEqual([8, undefined]);
});

test("samples are those of the chosen rank and its hosts, else of the first eight ranks", () => {
  const one = (of: string, ranks: number[]) => ({ of, host_name: `h${ranks[0]}`, ranks, name: "power", unit: "W", at_ns: [0], values: [1] });
  const series = [...Array.from({ length: 10 }, (_, rank) => one("device", [9 - rank])), one("host", [0, 1]), one("host", [8, 9])];
  const page = { cut: 0, origin_unix_ns: null, ranks_with_samples: 10, late: [9], series };
  const shown = (rank?: number) => chooseSeries(page, rank).map(({ of, ranks }) => `${of} ${ranks.join(" ")}`);
  expect(shown(1)).toEqual(["device 1", "host 0 1"]);
  expect(shown()).toEqual(["device 9", "device 8", "device 7", "device 6", "device 5", "device 4", "device 3", "device 2", "host 8 9"]);
});

test("each part of a file's name is escaped", () => {
  expect(filePath("team-a", "u1", "ranks/0/trace.json.gz")).toBe("/reports/team-a/u1/files/ranks/0/trace.json.gz");
  expect(filePath("team-a", "u1", "a b?#")).toBe("/reports/team-a/u1/files/a%20b%3F%23");
});

test.each([
  ["data_loading", "stage_data_loading"],
  ["slow_gpu", "compute"],
  [undefined, "compute"],
])("the heat map of a verdict's cause %s opens on %s", (cause, measure) => {
  expect(firstMeasures(cause)[0]).toBe(measure);
});
