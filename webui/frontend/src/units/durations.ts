// Durations as people of the field write them: three significant digits, the largest unit that keeps them above one.

const UNITS = [
  ["ns", 1],
  ["µs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
  ["min", 60e9],
  ["h", 3600e9],
] as const;

// Made once: a formatter is dearer than a hundred uses of it.
const DIGITS = [0, 1, 2].map(
  (decimals) => new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
);

/** Three significant digits without an exponent: 1.23, 12.3, 123, 1,234. */
export function threeDigits(value: number): string {
  const magnitude = Math.abs(value);
  const decimals = magnitude >= 99.95 || magnitude === 0 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return DIGITS[decimals]!.format(value);
}

/** `1_234_567` ns is "1.23 ms". Not known is an en dash. */
export function formatDuration(ns: number | null | undefined): string {
  if (ns == null || !Number.isFinite(ns)) return "–";
  if (ns === 0) return "0";
  const magnitude = Math.abs(ns);
  if (magnitude < 1e3) return `${Math.round(ns)} ns`;
  if (magnitude >= 120e9) return minutes(ns);
  // 999.6 µs is written as 1.00 ms: the unit is chosen after rounding.
  const [unit, size] = UNITS.findLast(([, one]) => magnitude / one >= 0.9995) ?? UNITS[0];
  return unit === "min" || unit === "h" ? `${threeDigits(ns / 1e9)} s` : `${threeDigits(ns / size)} ${unit}`;
}

function minutes(ns: number): string {
  const seconds = Math.round(Math.abs(ns) / 1e9);
  const sign = ns < 0 ? "-" : "";
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  const [min, sec] = [Math.floor(rest / 60), rest % 60];
  if (hours >= 48) return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`;
  return hours ? `${sign}${hours} h ${min} min` : `${sign}${min} min ${sec} s`;
}

/** A time on an axis whose marks are `stepNs` apart: with the digits in which neighbors differ. */
export function formatAxisTime(ns: number, stepNs: number): string {
  if (ns === 0) return "0";
  const { unit, size } = axisUnit(Math.abs(ns));
  const decimals = Math.max(0, Math.ceil(-Math.log10(stepNs / size) - 1e-9));
  return `${(ns / size).toFixed(decimals)} ${unit}`;
}

/** The unit that a whole axis or column is written in, for values up to `mostNs`. */
export function axisUnit(mostNs: number): { unit: string; size: number } {
  const [unit, size] = UNITS.slice(0, 4).findLast(([, one]) => mostNs / one >= 1) ?? UNITS[0];
  return { unit, size };
}
