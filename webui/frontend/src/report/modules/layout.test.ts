import { expect, test } from "vitest";
import type { ModuleNode } from "@/api/models";
import { holdings, listLines, placeBoxes, shortName, workOf } from "./layout";

const none = { host_ns: 0, device_ns: 0, launches: 0, operators: 0, flops: 0, moved_bytes: 0 };
const node = (name: string, depth: number, ns: number, more: object = {}) =>
  ({ name, depth, forward: { ...none, host_ns: ns }, backward: none, recompute: none, calls: 1, call_file: "", call_line: 0, ...more }) as ModuleNode;

const NODES = [
  node("Net", 0, 80, { call_file: "train.py", call_line: 9 }),
  node("Net.a", 1, 30, { parameter_bytes: 4, saved_bytes: 2, call_file: "net.py", call_line: 5 }),
  node("Net.a.x", 2, 20, { parameter_bytes: 8, call_file: "net.py", call_line: 5 }),
  node("Net.b", 1, 60, { parameter_bytes: null, call_file: "net.py", call_line: 6 }),
  node("Loss", 0, 0),
];
const AMOUNTS = NODES.map((one) => workOf(one, false));

test("what is inside a module lies below it, and never reaches out of it", () => {
  expect(placeBoxes(NODES, AMOUNTS, 100).map(({ at, around, depth, left, width }) => [at, around, depth, left, +width.toFixed(6)])).toEqual([
    [0, -1, 0, 0, 0.8],
    [1, 0, 1, 0, 0.3],
    [2, 1, 2, 0, 0.2],
    [3, 0, 1, 0.3, 0.5], // medians of parts need not add up
  ]);
  expect(placeBoxes(NODES, AMOUNTS, 0)).toEqual([]);
});

test("memory is that of all inside", () => {
  expect(holdings(NODES)).toEqual([14, 14, 8, 0, 0]);
});

test("a line inside itself counts once", () => {
  expect(listLines(NODES, false).map(({ place, workNs, heldBytes, calls }) => [place, workNs, heldBytes, calls])).toEqual([
    ["train.py:9", 80, 14, 1],
    ["net.py:6", 60, 0, 1],
    ["net.py:5", 30, 14, 2],
  ]);
});

test("names lose those of the module around them", () => {
  expect([shortName(NODES, 2, 1), shortName(NODES, 0, -1)]).toEqual(["x", "Net"]);
});
