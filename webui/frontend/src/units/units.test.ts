import { describe, expect, test } from "vitest";
import { formatAgo, formatTick, unixMillis } from "./dates";
import { axisUnit, formatAxisTime, formatDuration } from "./durations";
import { formatBytes, formatChange, formatMeasure, formatPerSecond, formatPower, formatRate, formatShare, plural } from "./quantities";
import { firstFitting, joinSentences, measureName, middleCut, sentenceCase, visibleText } from "./text";

test.each([
  [null, "–"],
  [0, "0"],
  [7, "7 ns"],
  [999, "999 ns"],
  [1_000, "1.00 µs"],
  [12_345, "12.3 µs"],
  [999_600, "1.00 ms"],
  [123_456_789, "123 ms"],
  [1_500_000_000, "1.50 s"],
  [119_000_000_000, "119 s"],
  [150_000_000_000, "2 min 30 s"],
  [7_320_000_000_000, "2 h 2 min"],
  [-2_000_000, "-2.00 ms"],
])("a duration of %s ns is %s", (ns, words) => {
  expect(formatDuration(ns)).toBe(words);
});

test.each([
  [[0, 500_000_000, 1_000_000_000, 1_500_000_000], ["0", "500 ms", "1.0 s", "1.5 s"]],
  [[1_260_000_000, 1_260_020_000, 1_260_040_000], ["1.26000 s", "1.26002 s", "1.26004 s"]],
  [[999_990, 1_000_000, 1_000_010], ["999.99 µs", "1.00000 ms", "1.00001 ms"]],
  [[-200, -100, 0, 100], ["-200 ns", "-100 ns", "0", "100 ns"]],
])("marks at %s ns are told apart", (times, words) => {
  expect(times.map((at) => formatAxisTime(at, times[1]! - times[0]!))).toEqual(words);
});

test.each([
  [900, "ns"],
  [5_000, "µs"],
  [2_000_000, "ms"],
  [3_000_000_000, "s"],
])("an axis up to %s ns is in %s", (most, unit) => {
  expect(axisUnit(most).unit).toBe(unit);
});

describe("quantities", () => {
  test.each([
    [formatBytes(1), "1 byte"],
    [formatBytes(512), "512 bytes"],
    [formatBytes(1_572_864), "1.50 MiB"],
    [formatRate(15_100_000_000), "15.1 GB/s"],
    [formatShare(0.273), "27 %"],
    [formatShare(0.0421), "4.2 %"],
    [formatShare(null), "–"],
    [formatPerSecond(1_234), "1.23"],
    [formatPerSecond(1_840_000), "1,840"],
    [formatPower(412_000), "412 W"],
    [formatPower(2_500_000), "2.50 kW"],
    [formatChange(0.37), "▲ +37 %"],
    [formatChange(-0.05), "▼ −5.0 %"],
    [formatChange(0), "±0 %"],
    [formatMeasure(12_300_000, "ns per iteration"), "12.3 ms per iteration"],
    [formatMeasure(6, "of 6"), "6 of 6"],
    [formatMeasure(1_250, "µJ"), "1.25 mJ"],
    [formatMeasure(640_000, "mJ"), "640 J"],
    [plural(1, "rank"), "1 rank"],
    [plural(1_000, "rank"), "1,000 ranks"],
  ])("%s", (formatted, words) => {
    expect(formatted).toBe(words);
  });
});

describe("dates", () => {
  test.each([
    [60_000, /^9:30:15\sPM$/],
    [3_600_000, /^9:30\sPM$/],
    [3 * 86_400_000, /^Nov 25$/],
  ])("a tick of an axis of %d ms tells morning from evening", (span, text) => {
    expect(formatTick(new Date("2026-11-25T21:30:15Z"), span, "UTC")).toMatch(text);
  });
  test("nanoseconds beyond 2^53 keep their milliseconds", () => {
    expect(unixMillis("1790000000123456789")).toBe(1_790_000_000_123);
  });
  test.each(["", "12x", "-5", "123456789012345678901"])("%j is no time", (text) => {
    expect(unixMillis(text)).toBeNull();
  });
  test.each([
    [30, "just now"],
    [180, "3 min. ago"],
    [7_200, "2 hr. ago"],
    [172_800, "2 days ago"],
  ])("%s seconds are %s", (seconds, words) => {
    const now = 1_790_000_000_000;
    expect(formatAgo(`${now - seconds * 1000}000000`, now)).toBe(words);
  });
});

describe("text of a trace", () => {
  test.each([
    ["a\u202Eb", "a\\u202Eb"],
    ["line\nbreak", "line\\u000Abreak"],
    ["zero\u200Bwidth", "zero\\u200Bwidth"],
    ["lone \uD800 half", "lone \\uD800 half"],
    ["<script>", "<script>"],
    ["gemm µ 🚀", "gemm µ 🚀"],
  ])("%j is shown as %s", (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });
  test("long names lose their middle", () => {
    expect(middleCut("void at::native::kernel<float>", 11)).toBe("void …loat>");
    expect(middleCut("short", 11)).toBe("short");
  });
  test.each([
    ["exposed_communication", "Exposed communication"],
    ["idle_host", "Idle: host"],
    ["stage_zero_grad", "Stage: zero grad"],
    ["something_new", "Something new"],
  ])("measure %s is %s", (measure, name) => {
    expect(measureName(measure)).toBe(name);
  });
  test.each([
    ["It fires: low use.", "It waits.", "It fires: low use. It waits."],
    ["12 % of activity", "It waits.", "12 % of activity. It waits."],
    ["12 % of activity", "", "12 % of activity"],
  ])("%j and %j are %j", (first, second, joined) => {
    expect(joinSentences(first, second)).toBe(joined);
  });
  test("abbreviations keep their case", () => {
    expect(sentenceCase("slow_gpu")).toBe("Slow GPU");
  });
});

test.each([
  [20, "iteration 7 · 1 ms"],
  [10, "7 · 1 ms"],
  [3, "7"],
  [0, ""],
])("of the names of a box %i characters wide the fullest that fits is shown: %s", (most, shown) => {
  expect(firstFitting(["iteration 7 · 1 ms", "7 · 1 ms", "7"], most)).toBe(shown);
});
