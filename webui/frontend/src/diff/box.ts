import type { Box } from "@/api/models";

/** The box plot of some values, its whiskers at both ends. */
export function boxOf(values: readonly number[]): Box {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)]!;
    return below + (place % 1) * ((sorted[Math.ceil(place)] ?? below) - below);
  };
  const [min, max] = [at(0), at(1)];
  return { min, q1: at(0.25), median: at(0.5), q3: at(0.75), max, low_whisker: min, high_whisker: max } as Box;
}
