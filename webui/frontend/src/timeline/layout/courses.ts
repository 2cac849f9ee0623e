/** The course of a folded rank's iteration on the time axis: runs of moments of one class. Pure. */

import type { Courses } from "../format/fleet";

export interface Run {
  cls: string;
  /** Pixels. */
  x: number;
  width: number;
}

/**
 * The runs of a cell that is `width` pixels wide and begins at `x`, as far as they lie in [left, right); undefined where
 * its course is not known. Of moments narrower than a pixel, the class that has most of a pixel's.
 */
export function runsOf(courses: Courses, row: number, cell: number, x: number, width: number, left: number, right: number): Run[] | undefined {
  const moments = courses.moments[row] ?? 0;
  if (!moments) return undefined;
  const each = width / moments;
  const step = Math.min(moments, Math.max(1, Math.ceil(1 / each)));
  const first = Math.max(0, Math.floor((left - x) / each / step) * step);
  const last = Math.min(moments, Math.ceil((right - x) / each));
  const runs: Run[] = [];
  for (let moment = first; moment < last; moment += step) {
    const cls = courses.classes[mostFrequent(courses.data, courses.begin[cell]! + moment, Math.min(step, moments - moment))]!;
    const from = x + moment * each;
    const to = x + Math.min(moments, moment + step) * each;
    const before = runs.at(-1);
    if (before?.cls === cls) before.width = to - before.x;
    else runs.push({ cls, x: from, width: to - from });
  }
  return runs;
}

/** The class of a moment of a cell, by the share of the cell's duration that has passed; undefined where it is not known. */
export function classAt(courses: Courses, row: number, cell: number, share: number): string | undefined {
  const moments = courses.moments[row] ?? 0;
  const moment = Math.min(moments - 1, Math.floor(share * moments));
  return moments ? courses.classes[courses.data[courses.begin[cell]! + moment]!] : undefined;
}

function mostFrequent(data: Uint8Array, from: number, count: number): number {
  if (count === 1) return data[from]!;
  const counts = new Map<number, number>();
  let best = data[from]!;
  for (let at = from; at < from + count; at++) {
    const cls = data[at]!;
    counts.set(cls, (counts.get(cls) ?? 0) + 1);
    if (counts.get(cls)! > counts.get(best)!) best = cls;
  }
  return best;
}
