// Arguments are found in the text of a trace, however it is written and cut into pieces.
import { expect, test } from "vitest";
import { ArgumentSearch, patternOf, searchPacked } from "./arguments";

const EVENTS = [
  { ph: "X", cat: "cpu_op", name: "aten::mm", ts: 1000.5, dur: 100, args: { "Input Dims": [[64, 128], [128, 256]] } },
  { ph: "X", cat: "kernel", name: "gemm stream 9", ts: 1050.25, dur: 30.125, args: { stream: 7, correlation: 12, bytes: 4096 } },
  { ph: "X", cat: "kernel", name: 'nccl "all"', ts: 1100, dur: 9, args: { stream: 70, "Process Group Name": "default_pg" } },
  { ph: "M", name: "thread_name", ts: 1000, pid: 0, tid: 7, args: { name: "stream 7 " } },
  { ph: "X", cat: "kernel", name: "bare", ts: 1200, dur: 1 },
];
const TRACE = { schemaVersion: 1, traceEvents: EVENTS, traceName: "stream 70", baseTimeNanoseconds: 1_700_000_000 };

function search(words: string, text: string, piece = text.length, origin = 1_701_000_000n) {
  const found = new ArgumentSearch(patternOf(words)!);
  for (let at = 0; at < text.length; at += piece) found.add(text.slice(at, at + piece));
  return found.finish(origin, true);
}

test.each<[string, string[]]>([
  ["stream 7", ["gemm stream 9"]],
  ["stream: 70", ['nccl "all"']],
  ["STREAM", ["gemm stream 9", 'nccl "all"']],
  ["[64,128]", ["aten::mm"]],
  ["[64, 128], [128", ["aten::mm"]],
  ["8, 256", []],
  ["correlation 1", []],
  ["group name default", ['nccl "all"']],
  ["bytes 4096", ["gemm stream 9"]],
  ["stream 9", []],
  ["gemm", []],
  ["(", []],
])("the arguments %j are those of %j", (words, names) => {
  for (const text of [JSON.stringify(TRACE), JSON.stringify(TRACE, null, 2)])
    for (const piece of [7, text.length]) {
      const { count, events } = search(words, text, piece);
      expect(events.map(({ name }) => name)).toEqual(names);
      expect(count).toBe(names.length);
    }
});

test.each<[string, object, bigint, number]>([
  ["with a base", TRACE, 1_701_000_000n, 50_250],
  ["with absolute times", { traceEvents: [{ ...EVENTS[1]!, ts: 1_700_000_000_000_001 }], baseTimeNanoseconds: 5 }, 17n * 10n ** 17n, 1000],
])("an event's time is that of the timeline, in a trace %s", (_, trace, origin, start) => {
  const text = JSON.stringify(trace);
  const [event] = search("stream 7", text, text.length, origin).events;
  expect([event!.start, event!.duration]).toEqual([start, 30_125]);
  expect(event!.text).toBe('"stream":7,"correlation":12,"bytes":4096');
});

test("of many events the first are kept and all are counted", () => {
  const many = { traceEvents: Array.from({ length: 20_000 }, (_, n) => ({ ...EVENTS[1]!, ts: n })) };
  const { count, events } = search("stream 7", JSON.stringify(many), 65_536);
  expect([count, events.length]).toEqual([20_000, 50]);
});

test.each([["no words", ""], ["signs that separate", ' ":, ']])("%s are not searched", (_, words) => {
  expect(patternOf(words)).toBeNull();
});

test.each([["whole", 0, 20_000, true], ["cut", 2000, undefined, false]])("a trace that is %s says how much of it was searched", async (_, cut, count, whole) => {
  const many = { traceEvents: Array.from({ length: 20_000 }, (__, n) => ({ ...EVENTS[1]!, ts: n * 7919 })) };
  const packed = await new Response(new Blob([JSON.stringify(many)]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  const stream = new Blob([packed.slice(0, packed.byteLength - cut)]).stream();
  const found = await searchPacked(stream, patternOf("stream 7")!, 0n);
  expect(found.whole).toBe(whole);
  expect(found.count).toBeGreaterThan(0);
  if (count) expect(found.count).toBe(count);
  else expect(found.count).toBeLessThan(20_000);
});
