import { expect, test } from "vitest";
import { colorOfFinding, figuresOf, partsOf, TIME_CLASSES } from "./classes";

const rank: Record<string, number> = {
  span: 130,
  compute: 50,
  overlapped_communication: 10,
  exposed_communication: 20,
  exposed_memory: 5,
  idle: 25,
  idle_data_loading: 8,
  idle_host: 3,
  idle_launching: 2,
  idle_synchronization: 1,
  idle_optimizer: 4,
  idle_waiting: 7,
  unrecorded: 30,
};

test("the parts add up to the span, overlapped communication taken out of compute", () => {
  const parts = partsOf((name) => rank[name]);
  expect(parts).toEqual([40, 10, 20, 5, 8, 6, 4, 7, 0, 30]);
  expect(parts.reduce((sum, part) => sum + part)).toBe(rank.span);
  expect(parts).toHaveLength(TIME_CLASSES.length);
});

test("as a figure compute is whole, as the report has it", () => {
  expect(figuresOf(partsOf((name) => rank[name]))).toEqual([50, 10, 20, 5, 8, 6, 4, 7, 0, 30]);
});

test("idle time of a rank without a device has no cause but is time without an operator", () => {
  expect(partsOf((name) => ({ compute: 1, idle: 9 })[name])).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 9, 0]);
});

test.each([
  ["totals.idle_ns.data_loading", "idle", "--data-loading"],
  ["idle_ns.host", "host", "--host"],
  ["idle_ns.waiting", "idle", "--idle"],
  ["time_ns.exposed_communication", "communication", "--communication"],
  ["time_ns.exposed_memory", "copies", "--memory"],
  ["kernels", "", "--compute"],
])("a finding about %s of %s has the color of that time", (measure, part, color) => {
  expect(colorOfFinding(measure, part)).toBe(color);
});
