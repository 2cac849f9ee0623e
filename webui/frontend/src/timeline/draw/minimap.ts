/** The whole time above the picture: the iterations of the ranks that are compared, and the part that is in view. */

import type { Fleet } from "../format/fleet";
import { toPixel, type Span, type View } from "../view";
import type { Colors } from "./fills";
import { paintCells } from "./painter";
import { GUTTER } from "./picture";

export const MINIMAP_HEIGHT = 34;
const LEAST_WINDOW = 6;
const VEIL = 0.66;

export interface Overview {
  fleet: Fleet;
  cells: number[][];
  /** Places of the ranks that are drawn, one below the other. */
  rows: number[];
  view: Span;
  width: number;
}

/** The ranks that say most about the capture: the one that is looked at, else the late one; and the median one. */
export function overviewRows(fleet: Fleet, open: readonly number[]): number[] {
  const { ranks, late, median_rank: median } = fleet.header;
  const first = open.at(-1) ?? late[0] ?? ranks.rank[0] ?? null;
  return [...new Set([first, median])].map((rank) => (rank === null ? -1 : ranks.rank.indexOf(rank))).filter((row) => row >= 0);
}

/** The axis of the whole, as wide as the picture's. */
export function wholeView(fleet: Fleet, width: number): View {
  return { start: 0, end: Math.max(1, fleet.header.span_ns), width };
}

/** Draws it. */
export function paintMinimap(context: CanvasRenderingContext2D, overview: Overview, colors: Colors): void {
  const { fleet, cells, rows, view, width } = overview;
  const whole = wholeView(fleet, width);
  context.fillStyle = colors.background;
  context.fillRect(0, 0, GUTTER + width, MINIMAP_HEIGHT);
  const height = MINIMAP_HEIGHT / Math.max(1, rows.length);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  rows.forEach((row, at) => {
    const band = { row, y: at * height - 1, height: height + 2 };
    paintCells(context, { fleet, cells, view: whole }, band, colors);
    context.fillStyle = colors.quiet;
    context.fillText(`rank ${fleet.header.ranks.rank[row]}`, 22, (at + 0.5) * height, GUTTER - 26);
  });
  const [left, right] = windowOf(view, whole);
  context.globalAlpha = VEIL;
  context.fillStyle = colors.surface;
  context.fillRect(GUTTER, 0, left - GUTTER, MINIMAP_HEIGHT);
  context.fillRect(right, 0, GUTTER + width - right, MINIMAP_HEIGHT);
  context.globalAlpha = 1;
  context.strokeStyle = colors.link;
  context.lineWidth = 2;
  context.strokeRect(left, 1, right - left, MINIMAP_HEIGHT - 2);
  context.lineWidth = 1;
}

/** The pixels from which to which the view goes, a few at the least, so that it can be taken hold of. */
export function windowOf(view: Span, whole: View): [number, number] {
  const limit = (x: number) => Math.min(GUTTER + whole.width, Math.max(GUTTER, x));
  const from = limit(GUTTER + toPixel(whole, view.start));
  const to = limit(GUTTER + toPixel(whole, view.end));
  if (to - from >= LEAST_WINDOW) return [from, to];
  const middle = Math.min(GUTTER + whole.width - LEAST_WINDOW / 2, Math.max(GUTTER + LEAST_WINDOW / 2, (from + to) / 2));
  return [middle - LEAST_WINDOW / 2, middle + LEAST_WINDOW / 2];
}
