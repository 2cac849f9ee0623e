// Unix nanoseconds arrive as decimal strings, because they pass 2^53. They are shown in the reader's own zone.

/** Milliseconds of a decimal string of nanoseconds; null where it is none. */
export function unixMillis(ns: string | null | undefined): number | null {
  if (!ns || !/^\d{1,20}$/.test(ns)) return null;
  return Number(BigInt(ns) / 1_000_000n);
}

export function formatDate(ns: string | null | undefined, zone?: string): string {
  const millis = unixMillis(ns);
  if (millis === null) return "–";
  return formatMillis(millis, zone);
}

/** The same of Unix milliseconds. */
export function formatMillis(millis: number, zone?: string): string {
  return new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: zone }).format(millis);
}

const [MINUTES, DAYS] = [5 * 60_000, 2 * 86_400_000];

/** What stands at a tick of a time axis of that length: the time of day, or the day where it spans several. */
export function formatTick(at: Date, spanMillis: number, zone?: string): string {
  const form: Intl.DateTimeFormatOptions =
    spanMillis >= DAYS ? { month: "short", day: "numeric" } : { hour: "numeric", minute: "2-digit", ...(spanMillis < MINUTES && { second: "2-digit" }) };
  return new Intl.DateTimeFormat(undefined, { ...form, timeZone: zone }).format(at);
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];

/** "3 hr. ago"; above 30 days the date. */
export function formatAgo(ns: string | null | undefined, nowMillis: number): string {
  const millis = unixMillis(ns);
  if (millis === null) return "–";
  const past = nowMillis - millis;
  if (Math.abs(past) < 60_000) return "just now";
  if (past > 30 * 86_400_000) return new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }).format(millis);
  const [unit, size] = STEPS.find(([, least]) => Math.abs(past) >= least) ?? ["minute", 60_000];
  return new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" }).format(-Math.round(past / size), unit);
}
