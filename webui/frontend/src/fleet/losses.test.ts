// Losses are summed by what pays for them; what is not known is counted, not guessed.
import { expect, test } from "vitest";
import type { LossRow } from "@/api/models";
import { sumLosses, WITHOUT_LABEL } from "./losses";

const row = (name: string, lost: number | null, labels: string[] = [], namespace = "a"): LossRow => ({
  namespace, kind: "Job", name, labels, report: null, gpus: null, hours: null, gpu_hours: lost === null ? null : 10 * lost,
  finding: "", gain_permille: null, lost_gpu_hours: lost, lost_kwh: lost,
});
const ROWS = [row("one", 2, ["team=vision"]), row("two", 5, ["team=speech"], "b"), row("three", 4, ["team=vision"]), row("told", null)];

test.each([
  ["namespace", [["a", 3, 6, 1], ["b", 1, 5, 0]]],
  ["team", [["vision", 2, 6, 0], ["speech", 1, 5, 0], [WITHOUT_LABEL, 1, null, 1]]],
  ["job", [["b/Job/two", 1, 5, 0], ["a/Job/three", 1, 4, 0], ["a/Job/one", 1, 2, 0], ["a/Job/told", 1, null, 1]]],
])("by %s", (by, expected) => {
  expect(sumLosses(ROWS, by).map(({ key, jobs, lostGpuHours, unknown }) => [key, jobs, lostGpuHours, unknown])).toEqual(expected);
});
