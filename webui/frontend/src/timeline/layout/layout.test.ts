// What is drawn where: views, tiles, bands and rectangles, as tables.
import { expect, test } from "vitest";
import { makeHeader, makeTile } from "../format/fixtures";
import type { Fleet, FleetHeader } from "../format/fleet";
import type { RankHeader } from "../format/rank";
import { WHOLE } from "../state";
import type { SampleSlice } from "@/api/models";
import { anchorAt, bandAt, chooseRows, heightOf, layOut, typicalRank, type Layout, type Rows } from "./bands";
import { countersOf, queueOf, throttledAt, type Counter } from "./counters";
import { chooseTiles } from "./levels";
import { classAt, runsOf } from "./courses";
import { addRectangles, rectangleAt, type Rectangle } from "./rectangles";
import { buildScene } from "./scene";
import { partsOf } from "./shares";

const window = { start: 0, nsPerPixel: 10, width: 100, leastNs: 0, bucketNs: 16 };

function draw(rows: [number, number, number, number, number][], carried = 0, part: Partial<typeof window> = {}) {
  const list: Rectangle[] = [];
  addRectangles(list, makeTile(2, rows, carried), 0, { ...window, ...part }, true);
  return list.map(({ x, width, name, count }) => [x, width, name, count]);
}

test.each<[string, Parameters<typeof draw>, number[][]]>([
  ["a row is where its time is", [[[0, 100, 200, 5, 1]]], [[10, 20, 5, 1]]],
  ["another lane's is not there", [[[1, 100, 200, 5, 1]]], []],
  ["a narrow row takes a pixel", [[[0, 100, 1, 5, 1]]], [[10, 1, 5, 1]]],
  ["of two in a pixel the longer is drawn, for both", [[[0, 100, 1, 5, 1], [0, 103, 4, 6, 2]]], [[10.3, 1, 6, 3]]],
  ["what began before the view reaches into it", [[[0, 0, 300, 5, 1]], 0, { start: 100 }], [[-1, 21, 5, 1]]],
  ["what is behind the view is not drawn", [[[0, 2000, 10, 5, 1]]], []],
  ["a carried row is drawn", [[[0, -50, 100, 5, 1], [0, 100, 50, 6, 1]], 1], [[-1, 6, 5, 1], [10, 5, 6, 1]]],
  ["what is too short is left out", [[[0, 0, 10, 5, 1], [0, 100, 50, 6, 1]], 0, { leastNs: 20 }], [[10, 5, 6, 1]]],
])("%s", (_, given, expected) => {
  expect(draw(...given)).toEqual(expected);
});

test.each<[string, [number, number, number, number, number][], number[] | null, number[]]>([
  ["a row of a tenth of a pixel covers a tenth", [[0, 100, 1, 5, 1]], null, [0.1]],
  ["rows of one pixel add up", [[0, 100, 2, 5, 1], [0, 103, 3, 6, 1]], null, [0.5]],
  ["no more than all of it", [[0, 100, 9, 5, 1], [0, 101, 9, 6, 1]], null, [1]],
  ["a row that stands for others covers what they cover", [[0, 100, 1, 5, 4]], [102], [0.64]],
  ["a wide row covers its width", [[0, 100, 30, 5, 4]], [255], [1]],
])("%s", (_, rows, covered, expected) => {
  const list: Rectangle[] = [];
  addRectangles(list, { ...makeTile(1, rows), covered: covered && Uint8Array.from(covered) }, 0, window, true);
  expect(list.map((one) => Number(one.covered.toFixed(2)))).toEqual(expected);
});

test("a hit is found by binary search, a pixel beside is near enough", () => {
  const list: Rectangle[] = [];
  addRectangles(list, makeTile(1, [[0, 100, 200, 5, 1], [0, 400, 1, 6, 1]]), 0, window, true);
  const names = [5, 10, 29.9, 32, 39.2, 40, 50].map((x) => rectangleAt(list, x)?.name);
  expect(names).toEqual([undefined, 5, 5, undefined, 6, 6, undefined]);
});

function withLevels(): RankHeader {
  const header = makeHeader();
  header.span_ns = 1 << 20;
  const level = (bucket: number, tiles: number) => ({
    bucket_ns: bucket,
    rows: 0,
    tiles: {
      start_ns: Array.from({ length: tiles }, (_, at) => (at * header.span_ns) / tiles),
      offset: [],
      length: [],
      crc32: [],
      rows: Array.from({ length: tiles }, () => 1),
      carried: [],
      max_duration_ns: Array.from({ length: tiles }, () => 1000),
      flags: [],
    },
  });
  header.levels = [level(1024, 1), level(256, 4), level(0, 64)];
  return header;
}

test.each([
  ["all of it", 0, 1 << 20, 1024, { level: 0, first: 0, last: 1 }],
  ["a quarter", 1 << 18, (1 << 19) - 1, 256, { level: 1, first: 1, last: 2 }],
  ["very near", 0, 1000, 1, { level: 2, first: 0, last: 1 }],
  ["too many tiles of the finest", 0, 1 << 20, 1, { level: 1, first: 0, last: 4 }],
  ["before the rank began", -5000, -10, 1024, { level: 0, first: 0, last: 0 }],
])("tiles of %s", (_, start, end, nsPerPixel, expected) => {
  expect(chooseTiles(withLevels(), start, end, nsPerPixel)).toEqual(expected);
});

function makeFleet(ranks: number[], part: Partial<FleetHeader> = {}): Fleet {
  return {
    header: {
      form: "fleetprof-timeline-fleet",
      origin_ns: "1790857026000000000",
      span_ns: 1000,
      stages: [],
      ranks: {
        rank: ranks,
        host: ranks.map(() => "a"),
        kind: ranks.map(() => "gpu"),
        detail: ranks.map(() => "full"),
        file_bytes: ranks.map(() => 9),
        shift_ns: ranks.map(() => 0),
      },
      cells: { offset: 0, length: 0, decoded: 0, crc32: 0 },
      cell_count: 0,
      cells_left_out: 0,
      late: [5],
      median_rank: 2,
      ...part,
    },
    cells: {},
    courses: { classes: [], moments: ranks.map(() => 0), begin: new Uint32Array(), data: new Uint8Array() },
  };
}

test.each([
  ["all", [], [0, 1, 2, 3]],
  ["late", [], [3, 1]],
  ["one", [4], [2]],
  ["one", [], [0]],
] as const)("rows of fold %s with %j open", (fold, open, rows) => {
  expect(chooseRows(makeFleet([0, 2, 4, 5]).header, fold, [...open])).toEqual(rows);
});

function makeRows(wide: Rows["wide"], part: Partial<Rows> = {}): Rows {
  return { headerOf: makeHeader, countersOf: () => [], wide, hidden: new Set(), pinned: new Set(), ...part };
}

const POWER: Counter = { name: "power", unit: "W", at: [0, 50], values: [300, 400], most: 400, throttled: [] };

test("counters stand above streams; a hidden track is left out, a pinned one stays above all whatever is scrolled", () => {
  const part = { countersOf: () => [POWER], hidden: new Set(["0.t1"]), pinned: new Set(["0.power"]) };
  const kinds = ({ bands }: Layout) => bands.map((band) => (band.kind === "lane" ? band.lane : band.kind));
  const fleet = makeFleet([0]);
  expect(kinds(layOut(fleet.header, [0], new Set([0]), makeRows(() => true, { countersOf: () => [POWER] })))).toEqual([
    "rank", "iterations", "stages", "counter", 0, 1, 2,
  ]);
  const layout = layOut(fleet.header, [0], new Set([0]), makeRows(() => true, part));
  expect(kinds(layout)).toEqual(["rank", "iterations", "stages", 0]);
  expect(layout.pinned).toMatchObject([{ kind: "counter", y: 0, label: "0: power" }]);
  expect(bandAt(layout, 5, 1000)).toBe(layout.pinned[0]);
  expect(bandAt(layout, layout.pinnedHeight + 1, 0)).toBe(layout.bands[0]);
});

test("launches wait from their call until they begin", () => {
  const tile = { ...makeTile(1, [[0, 100, 50, 0, 1], [0, 150, 50, 0, 1], [0, 300, 10, 0, 1]]), launch: Float64Array.from([10, 20, Number.NaN]) };
  const queue = queueOf([tile], 1000)!;
  expect([[...(queue.at as Float64Array)], queue.values, queue.most]).toEqual([[1010, 1020, 1100, 1150], [1, 2, 1, 0], 2]);
  expect(queueOf([makeTile(1, [[0, 100, 50, 0, 1]])], 0)).toBeUndefined();
});

test("samples are on the fleet's axis, and a clock says why it was low", () => {
  const series = (name: string, unit: string, values: number[]) => ({ of: "device", host_name: "a", ranks: [2], name, unit, at_ns: [0, 10], values });
  const page = {
    origin_unix_ns: "1000",
    series: [series("throttled_by_power", "%", [0, 40]), series("sm_clock", "MHz", [1900, 900]), { ...series("power", "W", [1, 2]), ranks: [3] }],
    ranks_with_samples: 2,
    late: [],
  };
  const [clock, ...others] = countersOf(page as unknown as SampleSlice, 2, 400n, 7);
  expect(others).toEqual([]);
  expect(clock).toMatchObject({ name: "sm_clock", at: [607, 617], values: [1900, 900], most: 1900 });
  expect([608, 620].map((at) => throttledAt(clock!, at))).toEqual([[], [["power", 40]]]);
});

test("under an open rank are iterations, stages, streams and the lanes in which something is seen", () => {
  const fleet = makeFleet([0, 1]);
  const layout = layOut(fleet.header, [0, 1], new Set([0]), makeRows((_, lane) => lane === 1));
  expect(layout.bands.map((band) => (band.kind === "lane" ? band.lane : band.kind))).toEqual([
    "rank", "iterations", "stages", 0, 1, "rank",
  ]);
  const lane = layout.bands[3]!;
  expect(bandAt(layout, lane.y)).toBe(lane);
  expect(bandAt(layout, lane.y - 1)).toBe(layout.bands[2]);
  expect(bandAt(layout, layout.height + 1)).toBeUndefined();
});

test("an anchor is a row and what is scrolled of it, whatever stands above that row", () => {
  const fleet = makeFleet([0, 1]);
  const layout = (...open: number[]) => layOut(fleet.header, [0, 1], new Set(open), makeRows(() => true));
  const row = layout(0).bands.at(-1)!;
  expect(anchorAt(layout(0), 0)).toBeNull();
  expect(anchorAt(layout(0), row.y - 1)).toEqual([0, row.y - 1]);
  expect(anchorAt(layout(0), row.y + 7.4)).toEqual([1, 7]);
  expect(heightOf(layout(0), [1, 7])).toBe(row.y + 7);
  expect(heightOf(layout(), [1, 7])).toBe(layout().bands[1]!.y + 7);
  expect(heightOf(layout(), [9, 7])).toBe(0);
});

test("while tiles are missing the coarser ones are drawn, and the missing ones wanted", () => {
  const header = withLevels();
  const tile = makeTile(3, [[0, 0, 1 << 20, 0, 9]]);
  const fleet = makeFleet([0]);
  const known = {
    headerOf: () => header,
    tileOf: (_: number, level: number) => (level === 0 ? tile : undefined),
    problemOf: () => "",
    countersOf: () => [],
  };
  const view = { start: 0, end: 1 << 18, width: 1024 };
  const scene = buildScene(fleet, { ...WHOLE, open: [0] }, view, known);
  expect(scene.ranks.get(0)).toMatchObject({ loading: true, offset: 123 });
  expect(scene.rectangles).toBe(1);
  expect(scene.wanted).toContainEqual({ rank: 0, level: 1, tile: 0 });
});

test("a tile that cannot be read is told, and what there is of the others is drawn", () => {
  const known = { headerOf: withLevels, tileOf: () => undefined, problemOf: () => "its checksum is wrong", countersOf: () => [] };
  const scene = buildScene(makeFleet([0]), { ...WHOLE, open: [0] }, { start: 0, end: 1 << 20, width: 1024 }, known);
  expect(scene.ranks.get(0)).toMatchObject({ loading: false, problem: "its checksum is wrong" });
});

test("never more rectangles than a frame can draw", () => {
  const header = withLevels();
  header.levels = header.levels.slice(0, 1);
  const lanes = 40;
  header.lanes = { track: Array.from({ length: lanes }, () => 1), depth: Array.from({ length: lanes }, (_, at) => at) };
  const rows = Array.from({ length: lanes * 1000 }, (_, at): [number, number, number, number, number] => [
    Math.floor(at / 1000), (at % 1000) * 1048, 900 + (at % 100), 0, 1,
  ]);
  const tile = makeTile(lanes, rows);
  const known = { headerOf: () => header, tileOf: () => tile, problemOf: () => "", countersOf: () => [] };
  const scene = buildScene(makeFleet([0]), { ...WHOLE, open: [0] }, { start: 0, end: 1 << 20, width: 1024 }, known);
  expect(scene.rectangles).toBeLessThanOrEqual(15_000);
});

test("an iteration's parts add up to it, and what is not known has none", () => {
  const cells = {
    compute_ns: Float64Array.of(60, -1),
    overlapped_communication_ns: Float64Array.of(20, -1),
    exposed_communication_ns: Float64Array.of(30, -1),
    exposed_memory_ns: Float64Array.of(0, -1),
    idle_ns: Float64Array.of(10, -1),
    stage_data_loading_ns: Float64Array.of(4, -1),
  };
  expect(partsOf(cells, 0).map(({ cls, share }) => [cls, share])).toEqual([
    ["compute", 0.4], ["communication_overlapped", 0.2], ["communication_exposed", 0.3],
    ["data_loading", 0.04], ["idle", 0.06],
  ]);
  expect(partsOf(cells, 1)).toEqual([]);
});

test.each<[string, number[], Partial<FleetHeader>, number | null]>([
  ["the median one", [5, 2, 7], {}, 2],
  ["not the median one where that is late", [5, 2, 7], { late: [5, 2] }, 7],
  ["none where all are late", [5, 2], { late: [5, 2] }, null],
])("beside a late rank stands %s", (_, ranks, part, expected) => {
  expect(typicalRank(makeFleet(ranks, part).header)).toBe(expected);
});

const courses = {
  classes: ["idle", "compute", "data_loading"],
  moments: [4, 0, 4],
  begin: Uint32Array.from([0, 4, 4]),
  data: Uint8Array.from([2, 1, 1, 0, 1, 1, 0, 2]),
};

test.each<[string, Parameters<typeof runsOf>, unknown]>([
  ["each run of one class is one box", [courses, 0, 0, 10, 40, 0, 100], [["data_loading", 10, 10], ["compute", 20, 20], ["idle", 40, 10]]],
  ["only what is in view is made", [courses, 0, 0, 10, 40, 25, 35], [["compute", 20, 20]]],
  ["a pixel is of the class that has most of it", [courses, 2, 2, 0, 1, 0, 100], [["compute", 0, 1]]],
  ["what is not known is said", [courses, 1, 1, 0, 40, 0, 100], undefined],
])("the course of an iteration: %s", (_, given, expected) => {
  expect(runsOf(...given)?.map(({ cls, x, width }) => [cls, x, width])).toEqual(expected);
});

test("a moment of an iteration has a class", () => {
  expect([0, 0.49, 0.99, 1].map((share) => classAt(courses, 0, 0, share))).toEqual(["data_loading", "compute", "idle", "idle"]);
  expect(classAt(courses, 1, 1, 0.5)).toBeUndefined();
});
