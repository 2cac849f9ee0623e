/**
 * What stands below what: a row for each rank; under an open one its iterations, stages, streams and threads. Pure.
 *
 * This is the semantic zoom: a lane of a thread appears when something in it is wide enough to be seen, so that a far
 * view has iterations, stages and streams, and a near one operators and what they call.
 */

import type { FleetHeader } from "../format/fleet";
import type { RankHeader } from "../format/rank";
import { formatDuration } from "@/units/durations";
import type { Fold } from "../state";
import type { Counter } from "./counters";
import { counterKey, trackKey, trackLabel } from "./tracks";

export const ROW_HEIGHT = 22;
export const LANE_HEIGHT = 18;
export const STRIP_HEIGHT = 20;
export const COUNTER_HEIGHT = 26;
const GAP = 8;

export type Band =
  | { kind: "rank"; row: number; y: number; height: number; open: boolean }
  | { kind: "iterations" | "stages"; row: number; y: number; height: number }
  | { kind: "lane"; row: number; rank: number; lane: number; y: number; height: number; label: string }
  | { kind: "counter"; row: number; rank: number; counter: string; y: number; height: number; label: string };

export interface Layout {
  bands: Band[];
  height: number;
  /** Above the others, whatever these are scrolled to; their own heights begin at 0. */
  pinned: Band[];
  pinnedHeight: number;
}

/** What is known of an open rank's rows. */
export interface Rows {
  headerOf: (rank: number) => RankHeader | undefined;
  countersOf: (rank: number) => readonly Counter[];
  /** Tells which lanes of an open rank have something to be seen in. */
  wide: (rank: number, lane: number) => boolean;
  hidden: ReadonlySet<string>;
  pinned: ReadonlySet<string>;
}

/** The rows (places in the fleet's ranks) that are shown, the late ones first where only they are wanted. */
export function chooseRows(fleet: FleetHeader, fold: Fold, open: number[]): number[] {
  const rows = fleet.ranks.rank.map((_, row) => row);
  if (fold === "all") return rows;
  const wanted = fold === "one" ? open.slice(0, 1) : [...fleet.late.slice(0, 3), ...known(typicalRank(fleet))];
  const chosen = wanted.map((rank) => fleet.ranks.rank.indexOf(rank)).filter((row) => row >= 0);
  return chosen.length ? [...new Set(chosen)] : rows.slice(0, 1);
}

/** The rank to look at first: the latest one that has events, else the median one, else any. */
export function suggestRank(fleet: FleetHeader): number | undefined {
  const { late, median_rank: median } = fleet;
  const full = fullRanks(fleet);
  return [...late, ...known(median), ...full].find((rank) => full.has(rank));
}

/** A rank that is not late, to look at beside one that is: the median one, else any with events; null if there is none. */
export function typicalRank(fleet: FleetHeader): number | null {
  const { ranks, late, median_rank: median } = fleet;
  const full = fullRanks(fleet);
  const others = [median, ...ranks.rank].filter((rank): rank is number => rank !== null && !late.includes(rank));
  return others.find((rank) => full.has(rank)) ?? others[0] ?? null;
}

/** Ranks whose events are stored. */
export function fullRanks({ ranks }: FleetHeader): Set<number> {
  return new Set(ranks.rank.filter((rank, row): rank is number => rank !== null && ranks.detail[row] === "full"));
}

/** Why there are not two ranks to compare; empty where there are. */
export function describeCompared(fleet: FleetHeader): string {
  if (fleet.late.length === 0) return "The report calls no rank late: a typical one stands alone.";
  return typicalRank(fleet) === null ? "Every rank is late: there is no typical one to compare with." : "";
}

/** What the picture shows, in a sentence. */
export function describeFleet({ ranks, late, span_ns: span }: FleetHeader): string {
  const found = late.length ? `; late: rank ${late.slice(0, 8).join(", ")}` : "";
  return `${ranks.rank.length} ranks over ${formatDuration(span)}${found}`;
}

/** Bands from top to bottom. */
export function layOut(fleet: FleetHeader, rows: number[], open: ReadonlySet<number>, { headerOf, countersOf, wide, hidden, pinned }: Rows): Layout {
  const bands: Band[] = [];
  const above: Band[] = [];
  let y = 0;
  let pinnedHeight = 0;
  const add = (band: Record<string, unknown>, height: number) => {
    bands.push({ ...band, y, height } as Band);
    y += height;
  };
  const addTrack = (key: string, band: Record<string, unknown> & { rank: number; label: string }, height: number) => {
    if (hidden.has(key)) return;
    if (!pinned.has(key)) return add(band, height);
    above.push({ ...band, label: band.label && `${band.rank}: ${band.label}`, y: pinnedHeight, height } as Band);
    pinnedHeight += height;
  };
  for (const row of rows) {
    const rank = fleet.ranks.rank[row] ?? null;
    const isOpen = rank !== null && open.has(rank);
    add({ kind: "rank", row, open: isOpen }, ROW_HEIGHT);
    if (rank === null || !isOpen) continue;
    const header = headerOf(rank);
    if (!header) {
      y += LANE_HEIGHT * 3;
      continue;
    }
    if (header.iterations.index.length) add({ kind: "iterations", row }, STRIP_HEIGHT);
    if (header.stage_pieces.stage.length) add({ kind: "stages", row }, STRIP_HEIGHT);
    for (const { name } of countersOf(rank))
      addTrack(counterKey(rank, name), { kind: "counter", row, rank, counter: name, label: counterLabel(name) }, COUNTER_HEIGHT);
    for (const lane of laneOrder(header)) {
      const track = header.lanes.track[lane]!;
      const isStream = header.tracks.kind[track] === "stream";
      if (!isStream && !wide(rank, lane)) continue;
      addTrack(trackKey(rank, track), { kind: "lane", row, rank, lane, label: header.lanes.depth[lane] === 0 ? trackLabel(header, track) : "" }, LANE_HEIGHT);
    }
    y += GAP;
  }
  return { bands, height: y, pinned: above, pinnedHeight };
}

/** Streams first, then the thread that trains, then the others. */
export function laneOrder(header: RankHeader): number[] {
  const weight = (lane: number) => {
    const track = header.lanes.track[lane]!;
    if (header.tracks.kind[track] === "stream") return 0;
    return track === header.tracks.main ? 1 : 2;
  };
  return header.lanes.track.map((_, lane) => lane).toSorted((one, other) => weight(one) - weight(other) || one - other);
}

/** The bands that touch [top, bottom). */
export function bandsWithin(layout: Layout, top: number, bottom: number): Band[] {
  return layout.bands.filter((band) => band.y < bottom && band.y + band.height > top);
}

/** The band at a height below the axis, while the rows are scrolled by `scrollTop`. */
export function bandAt({ bands, pinned, pinnedHeight }: Layout, height: number, scrollTop = 0): Band | undefined {
  if (height < pinnedHeight) return pinned.find((one) => height >= one.y && height < one.y + one.height);
  const y = height - pinnedHeight + scrollTop;
  let [low, high] = [0, bands.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bands[middle]!.y <= y) low = middle + 1;
    else high = middle;
  }
  const band = bands[low - 1];
  return band && y < band.y + band.height ? band : undefined;
}

/** The row that is at a height, and how far below its top the height is; null at the top of all. */
export function anchorAt(layout: Layout, y: number): [row: number, pixels: number] | null {
  const band = y > 0 ? layout.bands.findLast((one) => one.kind === "rank" && one.y <= y) : undefined;
  return band ? [band.row, Math.round(y - band.y)] : null;
}

/** The height of an anchor; 0 where its row is not shown. */
export function heightOf(layout: Layout, [row, pixels]: [row: number, pixels: number]): number {
  const band = layout.bands.find((one) => one.kind === "rank" && one.row === row);
  return band ? band.y + pixels : 0;
}

function known(rank: number | null): number[] {
  return rank === null ? [] : [rank];
}

/** "sm_clock" is "SM clock". */
export function counterLabel(name: string): string {
  return name.replaceAll("_", " ").replaceAll(/\b(sm|gpu|dram|pcie)\b/g, (word) => word.toUpperCase());
}
