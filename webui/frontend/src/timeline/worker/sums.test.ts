// What ran within a span: each event with its part inside, by track, class and name.
import { expect, test } from "vitest";
import { makeRank } from "../format/fixtures";
import type { RankHeader } from "../format/rank";
import { findCollective, findLast, groupOf } from "./collective";
import { findLaunched } from "./launched";
import { Source } from "./source";
import { sumRange } from "./sums";
import { findUnderWay } from "./underWay";

const serve = (files: Record<string, Uint8Array>) =>
  new Source(async (path, from, to) => ({ data: files[path]!.slice(from, to), whole: from === 0 }));
const source = serve({ "rank-0.bin": makeRank() });

test("a nested event counts for its name, the outermost for its thread, classes are of the device", async () => {
  expect(await sumRange(source, 0, 20, 60)).toEqual({
    tracks: [{ key: 1, count: 1, totalNs: 40 }, { key: 0, count: 1, totalNs: 10 }],
    classes: [{ key: "compute", count: 1, totalNs: 10 }],
    names: [{ key: 1, count: 2, totalNs: 70 }, { key: 0, count: 1, totalNs: 10 }],
  });
});

test("nothing runs behind the end", async () => {
  expect(await sumRange(source, 0, 200, 300)).toEqual({ tracks: [], classes: [], names: [] });
});

test("a trace without its single events says so", async () => {
  const long = serve({ "rank-0.bin": makeRank((header) => (header.whole = false)) });
  await expect(sumRange(long, 0, 0, 10)).rejects.toThrow("too long for its single events");
});

test("a collective is the one of the same place in the same iteration of each rank", async () => {
  const other = (change: (header: RankHeader) => void) => makeRank((header) => change(Object.assign(header, { rank: 1 })));
  const ranks = serve({
    "rank-0.bin": makeRank(),
    "rank-1.bin": other((header) => (header.iterations.index = [7])),
    "rank-2.bin": other((header) => (header.iterations.index = [8])),
    "rank-3.bin": other((header) => (header.names.text = ["another", "aten::mm"])),
  });
  const found = await findCollective(ranks, [0, 1, 2, 3], 0, 0, 50);
  expect(found).toMatchObject({ iteration: 7, position: 1, missing: [2, 3], events: [{ rank: 0, start: 50 }, { rank: 1, start: 50, duration: 30 }] });
  expect(await findCollective(ranks, [0, 1], 0, 0, 51)).toBeNull();
});

test.each<[string, number[], number | null]>([
  ["the shortest came last", [170, 20, 160, 165], 1],
  ["about as long", [100, 95, 102], null],
  ["one alone", [100], null],
  ["of two", [100, 20], 1],
])("of a collective: %s", (_, durations, last) => {
  expect(findLast(durations.map((duration, rank) => ({ rank, duration })))).toBe(last);
});

test.each<[unknown, number[] | null]>([
  ["[2, 3]", [2, 3]],
  ["[0, 1, 2, ..., 63]", null],
  ["[]", null],
  [undefined, null],
])("a group's ranks told as %j are %j", (words, ranks) => {
  expect(groupOf({ "Process Group Ranks": words })).toEqual(ranks);
});

test("what was under way on a thread is found from the outermost on", async () => {
  expect((await findUnderWay(source, 0, 1, 15)).map(({ lane, start }) => [lane, start])).toEqual([[1, 0], [2, 10]]);
  expect((await findUnderWay(source, 0, 2, 60)).map(({ lane }) => lane)).toEqual([1]);
});

test("what an event launched is found by when and where it was launched", async () => {
  expect((await findLaunched(source, 0, 1, 0, 100)).map(({ lane, start }) => [lane, start])).toEqual([[0, 50]]);
  expect(await findLaunched(source, 0, 1, 16, 100)).toEqual([]);
  expect(await findLaunched(source, 0, 0, 0, 100)).toEqual([]);
});
