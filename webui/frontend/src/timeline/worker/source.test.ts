// Files are read by ranges, and what does not fit is refused before anything is allocated for it.
import { expect, test } from "vitest";
import { makeFile, makeRank, planes } from "../format/fixtures";
import type { RankHeader } from "../format/rank";
import { Source, type FetchRange } from "./source";

function serve(files: Record<string, Uint8Array>, ranges: [number, number][] = [], ignoresRanges = false): FetchRange {
  return async (path, from, to) => {
    ranges.push([from, to]);
    const data = files[path]!;
    return ignoresRanges ? { data, whole: true } : { data: data.slice(from, to), whole: from === 0 };
  };
}

const good = { "rank-0.bin": makeRank() };

test("a rank's header, tile and tree are read from one request of the file's beginning", async () => {
  const ranges: [number, number][] = [];
  const source = new Source(serve(good, ranges));
  const header = await source.rank(0);
  const tile = await source.tile(0, 0, 0);
  const nodes = await source.nodes(0);
  expect(header.names.text).toEqual(["gemm", "aten::mm"]);
  expect([...tile.start]).toEqual([50, 0, 10]);
  expect([...tile.duration]).toEqual([30, 100, 40]);
  expect([...tile.laneBegin]).toEqual([0, 1, 2, 3]);
  expect([...tile.launch!]).toEqual([15, Number.NaN, Number.NaN]);
  expect([...nodes.parent]).toEqual([-1, 0, 1]);
  expect([...nodes.device_ns]).toEqual([30, 30, 30]);
  expect(ranges.length).toBe(1);
});

test("a server that ignores ranges is served by what it sends", async () => {
  const source = new Source(serve(good, [], true));
  await source.rank(0);
  expect((await source.tile(0, 0, 0)).rows).toBe(3);
});

function makeOverview(part: Record<string, unknown> = {}, course = [1, 0, 1]): Uint8Array {
  const cell = [0, 7, 100, 50, 20, -1, 10, 0, 20, 50];
  const data = planes(cell.map((value, at): [number, number[]] => [at === 0 ? 4 : 8, [value]]));
  return makeFile([data, Uint8Array.from(course)], ([cells, courses]) => ({
    form: "fleetprof-timeline-fleet",
    origin_ns: "5",
    span_ns: 150,
    stages: ["forward"],
    ranks: { rank: [3], host: ["a"], kind: ["gpu"], detail: ["full"], file_bytes: [9], shift_ns: [0] },
    cells,
    cell_count: 1,
    cells_left_out: 0,
    moments: [3],
    courses,
    course_count: 3,
    course_classes: ["idle", "compute"],
    late: [3],
    median_rank: 3,
    ...part,
  }));
}

test("an overview has the iterations of all ranks, and what each was made of", async () => {
  const { cells, courses } = await new Source(serve({ "fleet.bin": makeOverview() })).fleet();
  expect([cells.index![0], cells.compute_ns![0], cells.overlapped_communication_ns![0]]).toEqual([7, 20, -1]);
  expect(cells.stage_forward_ns![0]).toBe(50);
  expect([courses.moments, [...courses.data]]).toEqual([[3], [1, 0, 1]]);
});

test("an overview of an older version has no courses", async () => {
  const older = { moments: undefined, courses: undefined, course_count: undefined, course_classes: undefined };
  const { courses } = await new Source(serve({ "fleet.bin": makeOverview(older) })).fleet();
  expect(courses.moments).toEqual([0]);
});

test.each([
  ["moments of another number of ranks", { moments: [3, 3] }, /one for each rank/],
  ["fewer moments than there are", { moments: [2] }, /another number of moments/],
  ["moments without end", { course_count: 1e12 }, /more moments/],
  ["a part of a moment", { moments: [0.5] }, /a number that is none/],
  ["a class that is none", { course_classes: ["idle"] }, /a class/],
])("an overview with %s is refused", async (_, part, says) => {
  await expect(new Source(serve({ "fleet.bin": makeOverview(part) })).fleet()).rejects.toThrow(says);
});

const wrong: [string, (header: RankHeader) => void, RegExp][] = [
  ["an offset behind the end", (h) => (h.levels[0]!.tiles.offset[0] = 1e9), /ends behind/],
  ["a negative offset", (h) => (h.levels[0]!.tiles.offset[0] = -1), /none of them/],
  ["more rows than it has", (h) => (h.levels[0]!.tiles.rows[0] = 4), /less than it says/],
  ["rows without end", (h) => (h.levels[0]!.tiles.rows[0] = 1e12), /longer than is allowed/],
  ["another checksum", (h) => (h.levels[0]!.tiles.crc32[0] = 1), /checksum/],
  ["a lane of no track", (h) => (h.lanes.track = [0, 1, 9]), /tracks/],
  ["columns of unequal length", (h) => h.names.text.pop(), /unequal/],
  ["nodes without end", (h) => (h.nodes.count = 1e12), /more nodes/],
  ["no lanes at all", (h) => delete (h as Partial<RankHeader>).lanes, /lacks a part/],
  ["a name that is not there", (h) => Object.values(h.names).forEach((column) => column.pop()), /names/],
];

test.each(wrong)("%s is refused", async (_, change, says) => {
  const source = new Source(serve({ "rank-0.bin": makeRank(change) }));
  const read = async () => {
    await source.rank(0);
    await source.tile(0, 0, 0);
  };
  await expect(read()).rejects.toThrow(says);
});

test.each([
  ["another magic", 0, /other bytes/],
  ["another major version", 4, /upgrade fleetprof/],
  ["a damaged header", 40, /checksum/],
])("%s is refused", async (_, at, says) => {
  const file = makeRank();
  file[at]! ^= 0x55;
  await expect(new Source(serve({ "rank-0.bin": file })).rank(0)).rejects.toThrow(says);
});
