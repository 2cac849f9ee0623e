// The arguments of one event are read from the trace's text, wherever its base time stands and however it is cut.
import { expect, test } from "vitest";
import { EventSearch, readPacked } from "./eventArguments";

const MM = { ph: "X", cat: "cpu_op", name: "aten::mm", ts: 1000.5, dur: 100, args: { "Input Dims": [[64, 128], []], note: 'a "}" b' } };
const EVENTS = [{ ph: "M", name: "aten::mm", ts: 1000.5, args: { name: "thread" } }, { ...MM, ts: 900 }, MM, { ...MM, name: "aten::add" }];
const wanted = { name: "aten::mm", start: 500, origin: 1_701_000_000n };

test.each([
  ["before the events", { baseTimeNanoseconds: 1_700_000_000, traceEvents: EVENTS }],
  ["behind them", { traceEvents: EVENTS, baseTimeNanoseconds: 1_700_000_000 }],
])("the base time stands %s", (_, trace) => {
  const search = new EventSearch({ ...wanted, origin: 1_701_000_000n });
  search.add(JSON.stringify(trace));
  expect(search.finish()).toEqual(MM.args);
});

test("an event of another time is not it", () => {
  const search = new EventSearch({ ...wanted, start: 777 });
  search.add(JSON.stringify({ baseTimeNanoseconds: 1_700_000_000, traceEvents: EVENTS }));
  expect(search.finish()).toBeNull();
});

test("a packed trace is read", async () => {
  const text = JSON.stringify({ baseTimeNanoseconds: 1_700_000_000, traceEvents: EVENTS });
  expect(await readPacked(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip")), wanted)).toEqual(MM.args);
});
