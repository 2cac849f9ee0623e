// The pure parts around the picture: views, states from addresses, keys, search, groups, kept tiles.
import { expect, test } from "vitest";
import { makeHeader, makeNodes, makeTile } from "./format/fixtures";
import { commandOf, isMeant, type Command, type Focus } from "./keyboard";
import { searchLines, searchNames, searchRanks } from "./search";
import { leadTo, MOST_CHARACTERS, nameUnreadable, readState, WHOLE, writeState } from "./state";
import { findCollectives, findGaps, findThreads } from "./tree/gaps";
import { childrenOf, groupChildren, groupName } from "./tree/groups";
import { readOpened, writeOpened } from "./tree/opened";
import { around, pan, ticks, toNs, toPixel, zoom } from "./view";
import { TileCache } from "./worker/tiles";

const whole = { start: 0, end: 1000 };

test.each([
  ["closer", 0.5, 500, { start: 250, end: 750 }],
  ["closer around the left edge", 0.5, 0, { start: 0, end: 500 }],
  ["no further than all", 100, 500, { start: 0, end: 1000 }],
  ["no closer than 100 ns", 0.001, 500, { start: 450, end: 550 }],
])("zoom %s", (_, factor, center, expected) => {
  const found = zoom(whole, whole, factor, center);
  expect(found.start).toBeCloseTo(expected.start);
  expect(found.end).toBeCloseTo(expected.end);
});

test.each([
  ["pan", pan({ start: 0, end: 100 }, whole, 0.5), { start: 50, end: 150 }],
  ["pan before the beginning", pan({ start: 50, end: 150 }, whole, -5), { start: 0, end: 100 }],
  ["pan behind the end", pan({ start: 850, end: 950 }, whole, 5), { start: 900, end: 1000 }],
  ["pan to the beginning", pan({ start: 850, end: 950 }, whole, -Infinity), { start: 0, end: 100 }],
  ["zoom out at the beginning", zoom({ start: 0, end: 100 }, whole, 2, 50), { start: 0, end: 200 }],
  ["a first event", around({ start: 0, end: 500 }, whole), { start: 0, end: 700 }],
  ["all", around(whole, whole), whole],
])("no view begins before the time or ends after it: %s", (_, found, expected) => {
  expect(found).toEqual(expected);
});

test("pixels and times are each other's inverse, and ticks are round and apart", () => {
  const view = { start: 100, end: 1100, width: 500 };
  expect(toNs(view, toPixel(view, 333))).toBeCloseTo(333);
  expect(ticks(view)).toEqual([200, 400, 600, 800, 1000]);
});

test.each([
  ["nothing", undefined, WHOLE],
  ["a newer version", { version: 2, start: 5, end: 9 }, WHOLE],
  ["a view", { version: 1, start: 5, end: 9 }, { ...WHOLE, start: 5, end: 9 }],
  ["a view that ends before it starts", { version: 1, start: 9, end: 5 }, WHOLE],
  ["ranks that are none", { version: 1, open: [1, -1, 1.5, "2", 3] }, { ...WHOLE, open: [1, 3] }],
  ["text that is none", { version: 1, search: 7, mark: [3, 1], group: 900, fold: "x", chosen: { rank: "a" } }, WHOLE],
])("a state of %s", (_, value, expected) => {
  expect(readState(value)).toEqual(expected);
});

test("a state survives an address", () => {
  const state = {
    ...WHOLE, start: 1, end: 2, fold: "late" as const, open: [3], longest: true, search: "mm", group: 10,
    mark: [1, 2] as [number, number], chosen: { rank: 3, lane: 1, start: 5 },
    scroll: [2, 40] as [number, number], tree: { rank: 3, lines: "0.3~.17" },
  };
  const read = readState(JSON.parse(JSON.stringify(state)));
  expect(read).toEqual(state);
  expect(nameUnreadable(JSON.parse(JSON.stringify(state)), read)).toBe("");
});

test.each([
  ["nothing that is a view", undefined, "the view"],
  ["a newer version", { version: 2 }, "the view"],
  ["an address of before", { version: 1, start: 5, end: 9, open: [2] }, ""],
  ["a time and ranks", { version: 1, start: 9, end: 5, open: [1, -1] }, "the time in view, the opened ranks"],
  ["a scroll of one number", { version: 1, scroll: [3] }, "how far the rows are scrolled"],
  ["a scroll of endless length", { version: 1, scroll: [0, 1e9] }, "how far the rows are scrolled"],
  ["lines that are none", { version: 1, tree: { rank: 0, lines: "0.x" } }, "the opened lines of the tree"],
  ["too many lines", { version: 1, tree: { rank: 0, lines: Array(101).fill("7").join(".") } }, "the opened lines of the tree"],
  ["what later versions may say", { version: 1, color: "red", zoom: 1 }, "2 unknown parts"],
])("what could not be read of an address is named: %s", (_, value, expected) => {
  expect(nameUnreadable(value, readState(value))).toBe(expected);
});

test("an address has a bounded length, and keeps the lines that were opened first", () => {
  const open = new Set(Array.from({ length: 500 }, (_, node) => `${10_000 + node}~`));
  const lines = writeOpened(open);
  expect([...readOpened(lines)]).toEqual([...open].slice(0, 100));
  const longest = {
    ...WHOLE, start: 0.1 + 0.2, end: 2 ** 52 + 0.5, fold: "late" as const, open: Array.from({ length: 8 }, (__, n) => 9_000_000 + n),
    search: "\u0000".repeat(200), mark: [0.1 + 0.2, 2 ** 52 + 0.5] as [number, number],
    chosen: { rank: 9_000_000, lane: 60_000, start: 2 ** 52 + 0.5 }, scroll: [9_000_000, 999_999] as [number, number],
    tree: { rank: 9_000_000, lines },
  };
  expect(readState(JSON.parse(JSON.stringify(longest)))).toEqual(longest);
  expect(JSON.stringify(longest).length).toBeLessThan(MOST_CHARACTERS);
  expect(readOpened("").size).toBe(0);
});

const plain = { ctrlKey: false, metaKey: false, altKey: false, repeat: false };

test.each([
  ["KeyW", "z", { kind: "zoom", factor: 0.8 }],
  ["KeyA", "q", { kind: "pan", share: -0.1 }],
  ["ArrowUp", "ArrowUp", { kind: "step", along: 0, across: -1 }],
  ["Slash", "/", { kind: "search" }],
  ["Slash", "?", { kind: "help" }],
  ["Escape", "Escape", { kind: "clear" }],
  ["KeyX", "x", undefined],
])("the key %s (%s)", (code, key, expected) => {
  expect(commandOf({ ...plain, code, key })).toEqual(expected);
  expect(commandOf({ ...plain, code, key, ctrlKey: true })).toBeUndefined();
});

const zoomIn = { kind: "zoom", factor: 0.8 } as const;
const next = { kind: "step", along: 1, across: 0 } as const;

test.each<[string, Command, Focus, boolean, boolean]>([
  ["a letter on a page that was just opened", zoomIn, "page", true, true],
  ["a letter where it is switched off", zoomIn, "page", false, false],
  ["a letter on the picture, whatever is switched off", zoomIn, "picture", false, true],
  ["a letter beside a button", zoomIn, "control", true, true],
  ["a letter of a text", zoomIn, "text", true, false],
  ["an arrow on the page", next, "page", true, true],
  ["an arrow of a slider", next, "control", true, false],
  ["Enter on a button", { kind: "fit" }, "control", true, false],
  ["Escape beside a button", { kind: "clear" }, "control", true, true],
])("whose key it is: %s", (_, command, focus, everywhere, expected) => {
  expect(isMeant(command, focus, everywhere)).toBe(expected);
});

test("search finds parts of names whatever their case, and joins the classes of one", () => {
  const header = makeHeader();
  header.names = {
    text: ["ncclAllReduce", "gemm", "ncclAllReduce"], short: ["", "", ""], cls: [1, 0, 2], count: [2, 9, 3],
    total_ns: [20, 90, 30],
  };
  expect(searchNames(header, " NCCL ")).toEqual([{ text: "ncclAllReduce", names: [0, 2], count: 5, totalNs: 50 }]);
  expect(searchNames(header, "")).toEqual([]);
  expect(searchNames(header, "m").map((found) => found.text)).toEqual(["gemm"]);
});

test("several ranks are searched together, and each says how many of a name it has", () => {
  const header = (names: string[], count: number) => ({
    ...makeHeader(),
    names: { text: names, short: names.map(() => ""), cls: names.map(() => 0), count: names.map(() => count), total_ns: names.map(() => 10 * count) },
  });
  const ranks = new Map([[2, header(["gemm", "relu"], 40)], [0, header(["gemm"], 38)]]);
  expect(searchRanks(ranks, "gemm")).toEqual([
    { text: "gemm", count: 78, totalNs: 780, ranks: [{ rank: 2, count: 40 }, { rank: 0, count: 38 }] },
  ]);
  expect(searchRanks(ranks, "relu")[0]!.ranks).toEqual([{ rank: 2, count: 40 }]);
});

test.each([
  ["its function", "__GETITEM__", 1],
  ["its file and line", "dataset.py:41", 1],
  ["another line", "dataset.py:42", 0],
  ["nothing", "  ", 0],
])("a sampled line is found by %s", (_, words, count) => {
  const line = { file: "shop/dataset.py", line: 41, function: "Pictures.__getitem__", samples: 9, ofSamples: 10, ranks: [2], sentence: "" };
  expect(searchLines([line], words)).toHaveLength(count);
});

test("small neighbours and runs of one name are grouped, pieces of one stage too", () => {
  const nodes = makeNodes([
    [-1, 0, 0, 0, 1000], [0, 1, 0, 0, 300], [0, 1, 1, 300, 100], [0, 1, 2, 400, 600],
    [3, 2, 4, 400, 100], [3, 2, 4, 500, 100], [3, 2, 5, 600, 10], [3, 2, 6, 610, 5], [3, 2, 5, 620, 5], [3, 2, 7, 700, 200],
  ]);
  const children = childrenOf(nodes);
  const stageOf = (node: number) => (node === 2 ? 9 : 8);
  const names = ["", "a", "b", "a", "mm", "mm", "add", "mul", "add", "conv"];
  const grouped = (parent: number, share: number) =>
    groupChildren(nodes, nodes.duration_ns[parent]!, children.get(parent)!, share, stageOf).map((group) =>
      groupName(nodes, group, (node) => names[node]!),
    );
  expect(grouped(0, 0.05)).toEqual(["a × 2", "b"]);
  expect(grouped(3, 0.05)).toEqual(["mm × 2", "add (75 %) and 1 other", "conv"]);
  expect(grouped(3, 0)).toEqual(["mm × 2", "add", "mul", "add", "conv"]);
});

test("children, waits for other threads' collectives and the rest add up to their parent", () => {
  const nodes = makeNodes([[-1, 1, 0, 0, 1000], [0, 2, 4, 0, 300], [0, 2, 5, 350, 50], [2, 2, 6, 350, 20]]);
  const header = makeHeader();
  const cpu = { ...header, kind: "cpu" as const, tracks: { ...header.tracks, main: 0 }, names: { ...header.names, text: ["all_reduce", "mm"], cls: [1, 0] } };
  const collectives = findCollectives(cpu, [makeTile(3, [[1, 380, 520, 0, 1], [1, 910, 20, 1, 1], [0, 950, 20, 0, 1]])]);
  const children = childrenOf(nodes);
  const gaps = findGaps(nodes, [0], children, collectives, "nothing recorded");
  expect(gaps.map(({ gap, start, duration, total }) => [gap, start, duration, total])).toEqual([
    ["nothing recorded", 900, 100, 150],
    ["wait for all_reduce", 400, 500, 500],
  ]);
  expect(findGaps(nodes, [2], children, [], "self").map(({ gap, total }) => [gap, total])).toEqual([["self", 30]]);
  expect(findCollectives(header, [makeTile(3, [[1, 380, 520, 0, 1]])])).toEqual([]);
});

test("what another thread did is told from the time of the first one", () => {
  // An iteration, its mark with an operator of the first thread, and thread 78 with a row of its own.
  const nodes = makeNodes([[-1, 0, 0, 0, 1000], [0, 2, 0, 0, 1000], [1, 2, 1, 0, 300], [0, 3, 1, 400, 500], [3, 2, 1, 400, 500]]);
  const header = makeHeader();
  const children = childrenOf(nodes);
  const threads = findThreads({ ...header, tracks: { ...header.tracks, main: -1 } }, nodes, children);
  const gaps = (node: number, self: string) => findGaps(nodes, [node], children, threads, self).map(({ gap, total }) => [gap, total]);
  expect(gaps(1, "self")).toEqual([["self", 200], ["while thread 78 worked", 500]]);
  expect(gaps(0, "nothing recorded")).toEqual([]);
});

test("waits that coarse tiles hide are there as soon as the view has finer tiles", () => {
  const nodes = makeNodes([[-1, 1, 0, 0, 1000]]);
  const header = makeHeader();
  const cpu = { ...header, kind: "cpu" as const, tracks: { ...header.tracks, main: 0 }, names: { ...header.names, text: ["all_reduce", "mm"], cls: [1, 0] } };
  // The row at 100 stands for three at the coarse level.
  const coarse = makeTile(3, [[1, 100, 200, 0, 3], [2, 110, 700, 0, 1]]);
  const fine = makeTile(3, [[1, 100, 200, 0, 1], [1, 850, 20, 0, 1], [1, 900, 50, 0, 1], [2, 110, 700, 0, 1]]);
  const waits = (...tiles: (typeof coarse)[]) =>
    findGaps(nodes, [0], childrenOf(nodes), findCollectives(cpu, tiles), "nothing recorded").map(({ gap, total }) => [gap, total]);
  expect(waits(coarse)).toEqual([["nothing recorded", 290], ["wait for all_reduce", 710]]);
  expect(waits(coarse, fine)).toEqual([["nothing recorded", 220], ["wait for all_reduce", 780]]);
  expect(waits(fine, coarse)).toEqual(waits(coarse, fine));
});

test("of too many tiles those not used for longest go, never the last one", () => {
  const tile = () => makeTile(1, [[0, 0, 1, 0, 1]]);
  const one = new TileCache();
  one.set("a", tile());
  const size = one.bytes;
  const cache = new TileCache(2 * size);
  for (const key of ["a", "b"]) cache.set(key, tile());
  cache.get("a");
  cache.set("c", tile());
  expect(["a", "b", "c"].filter((key) => cache.get(key))).toEqual(["a", "c"]);
  expect(cache.bytes).toBe(2 * size);
  const tiny = new TileCache(1);
  tiny.set("a", tile());
  expect(tiny.get("a")).toBeDefined();
});

test("an address holds what the reader changed alone, and gives the same view", () => {
  expect(writeState(WHOLE)).toBe('{"version":1}');
  const state = { ...WHOLE, start: 10.4, end: 20, open: [5], hidden: ["5.t1"], pinned: ["5.power"], trail: [[0, 100] as [number, number]] };
  expect(writeState(state)).toBe('{"version":1,"start":10,"end":20,"open":[5],"hidden":["5.t1"],"pinned":["5.power"],"trail":[[0,100]]}');
  expect(readState(JSON.parse(writeState(state)))).toEqual({ ...state, start: 10 });
});

test("the way to a view is of those that hold it and are clearly longer", () => {
  expect(leadTo([], [0, 100], { start: 10, end: 20 })).toEqual([[0, 100]]);
  expect(leadTo([[0, 100]], [10, 20], { start: 12, end: 14 })).toEqual([[0, 100], [10, 20]]);
  expect(leadTo([[0, 100], [10, 20]], [12, 14], { start: 50, end: 60 })).toEqual([[0, 100]]);
  expect(leadTo([], [10, 20], { start: 11, end: 20 })).toEqual([]);
});
