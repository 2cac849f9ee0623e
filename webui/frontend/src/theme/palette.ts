// The theme's colours for Canvas, which knows no custom properties.

const CIVIDIS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"] as const;
const SIGNED = ["#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b"] as const;

/** What palette.css resolves a name to, as `rgb(…)`. */
export function colorOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function mix(stops: readonly string[], at: number): string {
  const position = Math.min(1, Math.max(0, at)) * (stops.length - 1);
  const index = Math.min(stops.length - 2, Math.floor(position));
  const share = position - index;
  const channel = (stop: string, offset: number) => Number.parseInt(stop.slice(offset, offset + 2), 16);
  const [from, to] = [stops[index] ?? "#000000", stops[index + 1] ?? "#000000"];
  const parts = [1, 3, 5].map((offset) => Math.round(channel(from, offset) * (1 - share) + channel(to, offset) * share));
  return `rgb(${parts.join(" ")})`;
}

/** Cividis for a share of the scale. What is worse (1) lies at the end far from the background. */
export function heatColor(share: number, theme: "light" | "dark"): string {
  return mix(CIVIDIS, theme === "light" ? 1 - share : share);
}

/** A signed difference in -1…1: blue is less, red is more. */
export function signedColor(share: number): string {
  return mix(SIGNED, (share + 1) / 2);
}
