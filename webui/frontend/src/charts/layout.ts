// Where marks lie, without a pixel of drawing: pure, so that tests look here and not at pictures.

/** More marks than this are drawn on Canvas, fewer as SVG. */
export const CANVAS_ABOVE = 2_000;

export interface Mark {
  /** Index of the row (rank) and of the part of its stack. */
  row: number;
  part: number;
  /** Both 0…1 of the longest row. */
  from: number;
  to: number;
}

/** Stacked parts of each row, as shares of the longest row. Empty parts make no mark. */
export function stack(rows: readonly (readonly number[])[]): Mark[] {
  const longest = Math.max(1, ...rows.map((parts) => parts.reduce((sum, part) => sum + part, 0)));
  return rows.flatMap((parts, row) => {
    let from = 0;
    return parts.flatMap((value, part) => {
      const mark = { row, part, from: from / longest, to: (from + value) / longest };
      from += value;
      return value > 0 ? [mark] : [];
    });
  });
}

/** The limits of a colour scale: 1st and 99th percentile, so that one cell does not wash out all others. */
export function clipLimits(values: readonly (number | null)[]): [low: number, high: number] {
  const known = values.filter((value): value is number => value !== null).toSorted((a, b) => a - b);
  if (known.length === 0) return [0, 1];
  const at = (share: number) => known[Math.round(share * (known.length - 1))] ?? 0;
  const [low, high] = [at(0.01), at(0.99)];
  return low < high ? [low, high] : [low, low + 1];
}

/** Position of a value on the scale, 0…1, and whether it lies beyond its limits. */
export function scalePosition(value: number, [low, high]: readonly [number, number]): { at: number; clipped: boolean } {
  const at = (value - low) / (high - low);
  return { at: Math.min(1, Math.max(0, at)), clipped: at < 0 || at > 1 };
}

/** Far beyond the scale: half its width above its end. Such a cell has a mark, since its colour is that of the end. */
export function isFarAbove(value: number, [low, high]: readonly [number, number]): boolean {
  return value > high + (high - low) / 2;
}

/**
 * Columns folded to at most `most`, each the worst (largest) of its cells: a late rank among a thousand stays visible.
 * `starts[i]` is the first column of the fold.
 */
export function foldColumns(rows: readonly (readonly (number | null)[])[], most: number): { starts: number[]; values: (number | null)[][] } {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const count = Math.min(columns, Math.max(1, Math.floor(most)));
  const starts = Array.from({ length: count }, (_, index) => Math.floor((index * columns) / count));
  const worst = (row: readonly (number | null)[], index: number) => {
    let found: number | null = null;
    for (let column = starts[index] ?? 0; column < (starts[index + 1] ?? columns); column += 1) {
      const value = row[column];
      if (value != null && (found === null || value > found)) found = value;
    }
    return found;
  };
  return { starts, values: rows.map((row) => starts.map((_, index) => worst(row, index))) };
}

/** Points of a sparkline in a box, null where there is no value; a single value is in the middle. */
export function sparkPoints(values: readonly (number | null)[], width: number, height: number): ([x: number, y: number] | null)[] {
  const known = values.filter((value): value is number => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values.map((value, index) => {
    if (value === null) return null;
    return [values.length > 1 ? index * step : width / 2, high > low ? height - ((value - low) / (high - low)) * height : height / 2];
  });
}

/** Ticks with what stands beside them; of neighbours that read alike the first. */
export function labelTicks(ticks: readonly number[], say: (tick: number) => string): { tick: number; label: string }[] {
  const labelled = ticks.map((tick) => ({ tick, label: say(tick) }));
  return labelled.filter(({ label }, index) => index === 0 || label !== labelled[index - 1]?.label);
}

/** A line without its gaps: a missing sample is not drawn over. */
export function pieces({ at, values }: { at: readonly number[]; values: readonly (number | null)[] }): [number, number][][] {
  const found: [number, number][][] = [[]];
  values.forEach((value, index) => {
    if (value === null) found.push([]);
    else found.at(-1)?.push([at[index] ?? 0, value]);
  });
  return found.filter((piece) => piece.length > 0);
}

/** Counts of `values` in equal bins between the smallest and the largest; one bin where all are equal. */
export function countInBins(values: readonly number[], bins: number): { counts: number[]; from: number; to: number } {
  const from = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const to = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  if (!(from < to)) return { counts: [values.length], from: values[0] ?? 0, to: values[0] ?? 0 };
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(((value - from) * bins) / (to - from)))]! += 1;
  return { counts, from, to };
}

/** The outline of a violin: bins 0…1 along, their counts as distance from `middle`, the fullest bin `middle` − 1 away. */
export function violinOf(density: readonly number[], middle: number): [at: number, y: number][] {
  const most = Math.max(1, ...density);
  const upper = density.map((count, bin): [number, number] => [(bin + 0.5) / density.length, middle - (count / most) * (middle - 1)]);
  const lower = upper.map(([at, y]): [number, number] => [at, 2 * middle - y]).toReversed();
  return [[0, middle], ...upper, [1, middle], ...lower];
}
