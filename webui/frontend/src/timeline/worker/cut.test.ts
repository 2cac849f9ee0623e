// A cut has what is in view, on the fleet's axis, with the arrows of its launches; a search finds events in order.
import { expect, test } from "vitest";
import { makeRank } from "../format/fixtures";
import { cutTrace } from "./cut";
import { findEvent } from "./find";
import { Source } from "./source";

function open(change?: Parameters<typeof makeRank>[0]): Source {
  const file = makeRank(change);
  return new Source(async (_, from, to) => ({ data: file.slice(from, to), whole: from === 0 }));
}

async function cut(start: number, end: number): Promise<Record<string, unknown>[]> {
  const bytes = await cutTrace(open(), [{ rank: 3, start, end, offset: 1000 }]);
  return JSON.parse(new TextDecoder().decode(bytes)).traceEvents;
}

test("a cut has the events in view and the arrow of a launch", async () => {
  const events = await cut(0, 200);
  const drawn = events.filter((event) => event.ph === "X").map(({ name, ts, dur, cat }) => [name, ts, dur, cat]);
  expect(drawn).toEqual([
    ["gemm", 1.05, 0.03, "compute"], ["aten::mm", 1, 0.1, "host"], ["aten::mm", 1.01, 0.04, "host"],
  ]);
  expect(events.filter((event) => event.cat === "launch").map(({ ph, ts }) => [ph, ts])).toEqual([["s", 1.015], ["f", 1.05]]);
});

test.each([
  ["what ended before it", 60, 200, ["gemm", "aten::mm"]],
  ["what begins behind it", 0, 5, ["aten::mm"]],
])("a cut leaves out %s", async (_, start, end, names) => {
  const events = await cut(start, end);
  expect(events.filter((event) => event.ph === "X").map((event) => event.name)).toEqual(names);
});

test("a trace without its single events is not cut", async () => {
  const source = open((header) => (header.whole = false));
  await expect(cutTrace(source, [{ rank: 0, start: 0, end: 9, offset: 0 }])).rejects.toThrow(/too long/);
});

test.each([
  [[1], -1, true, 0],
  [[1], 0, true, 10],
  [[1], 10, true, null],
  [[1], 10, false, 0],
  [[0, 1], 60, false, 50],
])("of names %j the next to %i (forward: %s) starts at %s", async (names, from, forward, start) => {
  expect((await findEvent(open(), 0, names, from, forward))?.start ?? null).toBe(start);
});
