import { expect, test } from "vitest";
import { nextSort, sortRows } from "./sorting";

const rows = [{ name: "b10", ns: 2 }, { name: "b9", ns: null }, { name: "a", ns: 7 }];
const names = (sort: string) => sortRows(rows, sort, (row, id) => row[id as "name" | "ns"]).map(({ name }) => name);

test.each([
  ["name", ["a", "b9", "b10"]],
  ["-name", ["b10", "b9", "a"]],
  ["ns", ["b10", "a", "b9"]],
  ["-ns", ["a", "b10", "b9"]],
])("by %s, what is not known last", (sort, wanted) => {
  expect(names(sort)).toEqual(wanted);
});

test.each([
  [{ id: "total", numeric: true }, undefined, "-total"],
  [{ id: "total", numeric: true }, "-total", "total"],
  [{ id: "name" }, "-total", "name"],
  [{ id: "name" }, "name", "-name"],
])("the header of %j, sorted by %s, sorts by %s", (column, sort, next) => {
  expect(nextSort(column, sort)).toBe(next);
});
