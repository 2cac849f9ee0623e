/**
 * What a view of the timeline is: a plain object, which the page writes into its address.
 *
 * Guarantees: whatever an address holds, a state comes of it, and what could not be read can be named; a state of a newer
 * version is one with defaults; a state is at most MOST_CHARACTERS long in an address.
 */

import { plural } from "@/units/quantities";

export type Fold = "all" | "late" | "one";

export interface TimelineState {
  version: 1;
  /** The view, ns from the fleet's origin; both 0 for all of it. */
  start: number;
  end: number;
  /** All ranks as rows; the late one and the median one; one rank alone. */
  fold: Fold;
  /** Ranks whose events are shown. */
  open: number[];
  /** Shows only what takes two hundredths of the view or more. */
  longest: boolean;
  search: string;
  /** Shares of a parent below which nodes of the tree are grouped, in hundredths. */
  group: number;
  /** A measured span, ns from the fleet's origin. */
  mark: [number, number] | null;
  /** The event that is looked at. */
  chosen: { rank: number; lane: number; start: number } | null;
  /** The rows are scrolled to the row of a rank, by its place in the fleet, and so many pixels further; null for the top. */
  scroll: [row: number, pixels: number] | null;
  /** Tracks that are not shown, and those that stay above the rows while these are scrolled (layout/tracks.ts). */
  hidden: string[];
  pinned: string[];
  /** Views that the reader came through, each within the one before. */
  trail: [start: number, end: number][];
  /** The opened lines of a rank's tree (tree/opened.ts); null for those that are open at first. */
  tree: { rank: number; lines: string } | null;
}

export const WHOLE: TimelineState = {
  version: 1,
  start: 0,
  end: 0,
  fold: "all",
  open: [],
  longest: false,
  search: "",
  group: 5,
  mark: null,
  chosen: null,
  scroll: null,
  hidden: [],
  pinned: [],
  trail: [],
  tree: null,
};

/** Whether Back should undo a change: another time or other ranks in view, other tracks, or a first choice or mark; not the next of many. */
export function isStep(before: TimelineState, part: Partial<TimelineState>): boolean {
  const { start, end, open, fold, chosen, hidden, pinned, mark } = part;
  const goes = (start !== undefined && start !== before.start) || (end !== undefined && end !== before.end);
  return goes || (open !== undefined && open !== before.open) || (fold !== undefined && fold !== before.fold) || (chosen != null && before.chosen === null) || hidden !== undefined || pinned !== undefined || (mark != null && before.mark === null);
}

export const MOST_OPEN = 8;
export const MOST_LINES = 100;
export const MOST_CHARACTERS = 4000;
const MOST_NS = 2 ** 53;
const MOST_PIXELS = 1_000_000;
const MOST_TRACKS = 64;
const MOST_TRAIL = 5;
const CLEARLY = 1.2;
const TRACK = /^\d{1,7}\.\w{1,64}$/;
const LINES = /^(\d{1,6}~?(\.\d{1,6}~?){0,99})?$/;

/** The state that an address says, as far as it says one. */
export function readState(value: unknown): TimelineState {
  if (typeof value !== "object" || value === null || (value as TimelineState).version !== 1) return WHOLE;
  const record = value as Record<string, unknown>;
  const start = time(record.start);
  const end = time(record.end);
  const mark = Array.isArray(record.mark) && record.mark.length === 2 ? record.mark.map(time) : null;
  const chosen = record.chosen as TimelineState["chosen"];
  const scroll = record.scroll as TimelineState["scroll"];
  const tree = record.tree as TimelineState["tree"];
  return {
    version: 1,
    start: end > start ? start : 0,
    end: end > start ? end : 0,
    fold: record.fold === "late" || record.fold === "one" ? record.fold : "all",
    open: Array.isArray(record.open) ? [...new Set(record.open.filter(isRank))].slice(0, MOST_OPEN) : [],
    longest: record.longest === true,
    search: typeof record.search === "string" ? record.search.slice(0, 200) : "",
    group: typeof record.group === "number" && record.group >= 0 && record.group <= 50 ? record.group : WHOLE.group,
    mark: mark && mark[1]! > mark[0]! ? [mark[0]!, mark[1]!] : null,
    chosen: chosen && isRank(chosen.rank) && isRank(chosen.lane) && Number.isFinite(chosen.start) ? { ...chosen } : null,
    scroll: Array.isArray(scroll) && scroll.length === 2 && scroll.every(isRank) && scroll[1] < MOST_PIXELS ? [...scroll] : null,
    hidden: readTracks(record.hidden),
    pinned: readTracks(record.pinned),
    trail: readTrail(record.trail),
    tree: tree && isRank(tree.rank) && typeof tree.lines === "string" && LINES.test(tree.lines) ? { ...tree } : null,
  };
}

/** The state as an address holds it: without what is as it is at first, times in whole ns. */
export function writeState(state: TimelineState): string {
  const first = WHOLE as unknown as Record<string, unknown>;
  const parts = Object.entries(state).filter(([key, part]) => key === "version" || JSON.stringify(part) !== JSON.stringify(first[key]));
  return JSON.stringify(Object.fromEntries(parts), (key, part: unknown) => (typeof part === "number" && key !== "version" ? Math.round(part) : part));
}

/** The views that lead to the next one, when the reader goes on from one: those that hold it, and are clearly longer. */
export function leadTo(trail: TimelineState["trail"], from: [number, number], to: { start: number; end: number }): TimelineState["trail"] {
  const length = to.end - to.start;
  return [...trail, from].filter(([start, end]) => start <= to.start && end >= to.end && end - start > CLEARLY * length).slice(-MOST_TRAIL);
}

/** Names the parts of what an address says that are not in the state that was read of it; empty where all are. */
export function nameUnreadable(value: unknown, state: TimelineState): string {
  if (typeof value !== "object" || value === null || state === WHOLE) return "the view";
  const read = state as unknown as Record<string, unknown>;
  const parts = Object.entries(value).filter(([key, part]) => JSON.stringify(part) !== JSON.stringify(read[key]));
  const known = [...new Set(parts.flatMap(([key]) => PARTS.get(key) ?? []))];
  const others = parts.length - parts.filter(([key]) => PARTS.has(key)).length;
  return [...known, ...(others ? [plural(others, "unknown part")] : [])].join(", ");
}

const PARTS = new Map([
  ["start", "the time in view"],
  ["end", "the time in view"],
  ["fold", "which ranks are rows"],
  ["open", "the opened ranks"],
  ["longest", "whether only the longest are shown"],
  ["search", "the search"],
  ["group", "the share of groups"],
  ["mark", "the measured time"],
  ["chosen", "the chosen event"],
  ["scroll", "how far the rows are scrolled"],
  ["hidden", "the hidden tracks"],
  ["pinned", "the pinned tracks"],
  ["trail", "the way to the view"],
  ["tree", "the opened lines of the tree"],
]);

function time(value: unknown): number {
  return typeof value === "number" && Math.abs(value) < MOST_NS ? value : 0;
}

function isRank(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 10_000_000;
}

function readTracks(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return [...new Set(value.filter((one): one is string => typeof one === "string" && TRACK.test(one)))].slice(0, MOST_TRACKS);
}

function readTrail(value: unknown): TimelineState["trail"] {
  if (!Array.isArray(value)) return [];
  return value
    .map((one): [number, number] => (Array.isArray(one) && one.length === 2 ? [time(one[0]), time(one[1])] : [0, 0]))
    .filter(([start, end]) => end > start)
    .slice(0, MOST_TRAIL);
}
