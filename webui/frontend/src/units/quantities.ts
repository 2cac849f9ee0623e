// Shares, sizes, rates and counts in words and digits. What is not known is an en dash, never 0.
import { formatDuration, threeDigits } from "./durations";

const BINARY = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;
const DECIMAL = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"] as const;

function scaled(value: number, base: number, names: readonly string[]): string {
  let power = 0;
  let rest = Math.abs(value);
  while (rest >= base * 0.9995 && power < names.length - 1) {
    rest /= base;
    power += 1;
  }
  const signed = value < 0 ? -rest : rest;
  if (power > 0) return `${threeDigits(signed)} ${names[power]}`;
  const whole = Math.round(signed);
  return `${whole.toLocaleString("en-US")} ${Math.abs(whole) === 1 && names[0] === "bytes" ? "byte" : names[0]}`;
}

export function formatBytes(bytes: number | null | undefined): string {
  return bytes == null ? "–" : scaled(bytes, 1024, BINARY);
}

export function formatRate(bytesPerSecond: number | null | undefined): string {
  return bytesPerSecond == null ? "–" : scaled(bytesPerSecond, 1000, DECIMAL);
}

export function formatCount(count: number | null | undefined): string {
  return count == null ? "–" : count.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** A count in 1,000 seconds as one in a second, three digits. */
export function formatPerSecond(perThousandSeconds: number | null | undefined): string {
  if (perThousandSeconds == null) return "–";
  const rate = perThousandSeconds / 1000;
  return rate >= 1000 ? formatCount(Math.round(rate)) : threeDigits(rate);
}

/** A share of 1: whole percent, below 10 % one decimal. */
export function formatShare(share: number | null | undefined): string {
  if (share == null || !Number.isFinite(share)) return "–";
  const percent = share * 100;
  const decimals = percent !== 0 && Math.abs(percent) < 9.95 ? 1 : 0;
  return `${percent.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })} %`;
}

/** A share of 1 with one decimal, as the terminal and report.html write it. */
export function formatPercent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

export function formatPermille(permille: number | null | undefined): string {
  return permille == null ? "–" : formatShare(permille / 1000);
}

export function formatPower(milliwatts: number | null | undefined): string {
  if (milliwatts == null) return "–";
  return milliwatts >= 1e6 ? `${threeDigits(milliwatts / 1e6)} kW` : `${threeDigits(milliwatts / 1e3)} W`;
}

export function formatEnergy(millijoules: number | null | undefined): string {
  if (millijoules == null) return "–";
  if (millijoules >= 1e9) return `${threeDigits(millijoules / 1e9)} MJ`;
  if (millijoules >= 1e6) return `${threeDigits(millijoules / 1e6)} kJ`;
  return millijoules === 0 || millijoules >= 100 ? `${threeDigits(millijoules / 1e3)} J` : `${threeDigits(millijoules)} mJ`;
}

/** A value of a measure in the unit that the report names: ns, mJ, µJ, bytes, count. */
export function formatMeasure(value: number | null | undefined, unit: string): string {
  if (value == null) return "–";
  switch (unit) {
    case "ns":
      return formatDuration(value);
    case "mJ":
      return formatEnergy(value);
    case "µJ":
      return formatEnergy(value / 1000);
    case "bytes":
      return formatBytes(value);
    case "bytes/s":
      return formatRate(value);
    case "count":
      return formatCount(value);
    case "share":
      return formatShare(value);
    default:
      if (unit.startsWith("ns ")) return `${formatDuration(value)} ${unit.slice(3)}`;
      return `${Number.isInteger(value) ? formatCount(value) : threeDigits(value)} ${unit}`.trim();
  }
}

/** A signed change with its sign and arrow, so that colour is not the only sign. */
export function formatChange(share: number | null | undefined): string {
  if (share == null || !Number.isFinite(share)) return "–";
  if (Math.abs(share) < 0.0005) return "±0 %";
  return share > 0 ? `▲ +${formatShare(share)}` : `▼ −${formatShare(-share)}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
