/** Draws a scene on a Canvas 2D. Reads no layout of the page; called in the one animation frame. */

import { formatDuration, formatAxisTime } from "@/units/durations";
import { STAGE_CLASSES } from "@/theme/classes";
import { firstFitting, middleCut, visibleText } from "@/units/text";
import type { Fleet } from "../format/fleet";
import { bandsWithin, type Band } from "../layout/bands";
import type { RankScene } from "../layout/scene";
import { QUEUE } from "../layout/counters";
import { runsOf, type Run } from "../layout/courses";
import { partsOf } from "../layout/shares";
import { ticks, toPixel } from "../view";
import { paintArrows } from "./arrows";
import { paintCounter } from "./counter";
import type { Colors, Fill } from "./fills";
import { AXIS_HEIGHT, GUTTER, type Picture } from "./picture";

const LEAST_HEIGHT = 1.5;
const LETTER_HEIGHT = 11;
const FONT = "11px system-ui, sans-serif";

/** Draws the whole picture. */
export function paint(context: CanvasRenderingContext2D, picture: Picture, colors: Colors): void {
  const { view, height, scrollTop, scene } = picture;
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillStyle = colors.background;
  context.fillRect(0, 0, view.width + GUTTER, height);
  paintAxis(context, picture, colors);
  const { pinned, pinnedHeight } = scene.layout;
  const top = AXIS_HEIGHT + pinnedHeight;
  paintOutside(context, picture, colors);
  context.save();
  context.beginPath();
  context.rect(0, top, view.width + GUTTER, height - top);
  context.clip();
  context.translate(0, top - scrollTop);
  for (const band of bandsWithin(scene.layout, scrollTop, scrollTop + height)) paintBand(context, picture, band, colors);
  paintArrows(context, picture, colors);
  context.restore();
  context.save();
  context.translate(0, AXIS_HEIGHT);
  for (const band of pinned) paintBand(context, picture, band, colors);
  context.fillStyle = colors.text;
  if (pinnedHeight) context.fillRect(0, pinnedHeight - 1, view.width + GUTTER, 1);
  context.restore();
  paintMark(context, picture, colors);
}

/** What lies outside of the recorded iterations, where samples alone are. */
function paintOutside(context: CanvasRenderingContext2D, { view, height, fleet, scene }: Picture, colors: Colors): void {
  if ([...scene.ranks.values()].every(({ counters }) => counters.every(({ name }) => name === QUEUE))) return;
  const window = [0, fleet.header.span_ns].map((at) => Math.min(Math.max(toPixel(view, at), 0), view.width)) as [number, number];
  context.fillStyle = colors.line;
  context.globalAlpha = 0.25;
  context.fillRect(GUTTER, AXIS_HEIGHT, window[0], height);
  context.fillRect(GUTTER + window[1], AXIS_HEIGHT, view.width - window[1], height);
  context.globalAlpha = 1;
}

function paintAxis(context: CanvasRenderingContext2D, { view, height }: Picture, colors: Colors): void {
  const times = ticks(view);
  const step = (times[1] ?? view.end) - (times[0] ?? view.start);
  let free = GUTTER;
  for (const at of times) {
    const x = Math.round(GUTTER + toPixel(view, at)) + 0.5;
    context.strokeStyle = colors.line;
    context.globalAlpha = 0.5;
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT - 6);
    context.lineTo(x, height);
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = colors.quiet;
    const text = formatAxisTime(at, step);
    const right = x + 3 + context.measureText(text).width;
    // A label that would touch the one before, or be cut at the edge, is left out: its line says where it is.
    if (x < free || right > GUTTER + view.width) continue;
    free = right + 4;
    context.fillText(text, x + 3, 10);
  }
}

function paintBand(context: CanvasRenderingContext2D, picture: Picture, band: Band, colors: Colors): void {
  const { fleet, view } = picture;
  const rank = fleet.header.ranks.rank[band.row] ?? null;
  const opened = rank === null ? undefined : picture.scene.ranks.get(rank);
  context.save();
  context.beginPath();
  context.rect(GUTTER, band.y, view.width, band.height);
  context.clip();
  if (band.kind === "rank") paintCells(context, picture, band, colors);
  else if (opened && band.kind === "counter") paintCounter(context, picture, opened.counters.find(({ name }) => name === band.counter), band, colors);
  else if (opened && band.kind === "lane") paintLane(context, picture, opened, rank!, band, colors);
  else if (opened) paintStrip(context, picture, opened, band, colors);
  context.restore();
  paintLabel(context, picture, band, rank, opened, colors);
}

function paintLabel(
  context: CanvasRenderingContext2D,
  { fleet }: Picture,
  band: Band,
  rank: number | null,
  opened: RankScene | undefined,
  colors: Colors,
): void {
  const middle = band.y + band.height / 2;
  context.fillStyle = band.kind === "rank" ? colors.text : colors.quiet;
  if (band.kind !== "rank") {
    const text = band.kind === "lane" || band.kind === "counter" ? band.label : band.kind;
    if (text) context.fillText(middleCut(visibleText(text), 24), 22, middle, GUTTER - 26);
    return;
  }
  const isLate = rank !== null && fleet.header.late.includes(rank);
  const full = fleet.header.ranks.detail[band.row] === "full";
  context.fillText(full ? (band.open ? "▾" : "▸") : "·", 6, middle);
  const name = rank === null ? "no rank" : `rank ${rank}`;
  const label = isLate ? `${name} · late` : rank === fleet.header.median_rank ? `${name} · median` : name;
  context.font = isLate ? `600 ${FONT}` : FONT;
  if (isLate) context.fillStyle = colors.fill("communication_exposed").solid;
  context.fillText(label + (opened?.loading && band.open ? " …" : ""), 22, middle, GUTTER - 26);
  context.font = FONT;
}

/** A rank's iterations: what ran when; where that is not known, their parts side by side. */
export function paintCells(
  context: CanvasRenderingContext2D,
  { fleet, cells, view }: Pick<Picture, "fleet" | "cells" | "view">,
  band: Pick<Band, "row" | "y" | "height">,
  colors: Colors,
): void {
  const [top, height] = [band.y + 3, band.height - 6];
  const right = GUTTER + view.width;
  for (const cell of cells[band.row] ?? []) {
    const start = fleet.cells.start_ns![cell]!;
    const from = GUTTER + toPixel(view, start);
    const width = toPixel(view, start + fleet.cells.duration_ns![cell]!) - toPixel(view, start);
    if (from > right || from + width < GUTTER) continue;
    const runs = runsOf(fleet.courses, band.row, cell, from, width, GUTTER, right) ?? sideBySide(fleet, cell, from, width);
    for (const { cls, x, width: wide } of runs) paintBox(context, colors, cls, x, top, wide, height, 1);
    context.fillStyle = colors.background;
    if (width > 3) context.fillRect(from + width - 1, top, 1, height);
  }
}

function sideBySide(fleet: Fleet, cell: number, from: number, width: number): Run[] {
  const parts = partsOf(fleet.cells, cell);
  let x = from;
  return (parts.length ? parts : [{ cls: "idle", share: 1 }]).map(({ cls, share }) => {
    const run = { cls, x, width: share * width };
    x += run.width;
    return run;
  });
}

function paintStrip(
  context: CanvasRenderingContext2D,
  { view }: Picture,
  { header, offset }: RankScene,
  band: Band,
  colors: Colors,
): void {
  const isStage = band.kind === "stages";
  const spans = isStage ? header.stage_pieces : header.iterations;
  for (let at = 0; at < spans.start_ns.length; at++) {
    const from = GUTTER + toPixel(view, spans.start_ns[at]! + offset);
    const width = toPixel(view, spans.start_ns[at]! + spans.duration_ns[at]!) - toPixel(view, spans.start_ns[at]!);
    if (from > GUTTER + view.width || from + width < GUTTER) continue;
    const stage = header.stages[header.stage_pieces.stage[at] ?? 0] ?? "other";
    const cls = isStage ? STAGE_CLASSES[stage] ?? "idle" : "idle";
    const faint = stage === "backward" ? 0.82 : stage === "loss" ? 0.66 : 1;
    const name = isStage ? stage.replace("_", " ") : `${header.iterations.index[at]}`;
    const took = `${name} · ${formatDuration(spans.duration_ns[at]!)}`;
    const text = firstFitting(isStage ? [took, name] : [`iteration ${took}`, took, name], charactersIn(from, width));
    paintBox(context, colors, cls, from, band.y + 1, Math.max(1, width - 1), band.height - 3, isStage ? faint : 1, !isStage, !text);
    const ink = isStage ? colors.fill(cls).text : colors.text;
    if (text) paintText(context, text, from, width, band, ink, isStage ? backingOf(colors.fill(cls)) : "");
  }
}

function paintLane(
  context: CanvasRenderingContext2D,
  { found, state, hover }: Picture,
  { header, lanes }: RankScene,
  rank: number,
  band: Band & { kind: "lane" },
  colors: Colors,
): void {
  const wanted = found?.get(rank);
  for (const one of lanes[band.lane] ?? []) {
    const cls = header.classes[header.names.cls[one.name]!]!;
    const left = GUTTER + one.x;
    const faint = found && !wanted?.has(one.name) ? 0.15 : 1 - (one.name % 3) * 0.08;
    // Rows narrower than a pixel are as high as the share of it that they cover, or a device that idles looks busy.
    const height = Math.max(LEAST_HEIGHT, one.covered * (band.height - 2));
    const top = band.y + band.height - 1 - height;
    paintBox(context, colors, cls, left, top, Math.max(1, one.width - (one.width > 3 ? 1 : 0)), height, faint);
    if (one.width > 36) {
      const name = header.names.short[one.name] || header.names.text[one.name]!;
      const others = one.count > 1 ? ` +${one.count - 1}` : "";
      paintText(context, name + others, left, one.width, band, faint < 0.5 ? colors.quiet : colors.fill(cls).text, faint < 0.5 ? "" : backingOf(colors.fill(cls)));
    }
    const isChosen = state.chosen?.rank === rank && state.chosen.lane === band.lane && state.chosen.start === one.start;
    const isHover = hover?.band === band && hover.rectangle.start === one.start;
    if (isChosen || isHover) {
      context.strokeStyle = colors.text;
      context.lineWidth = isChosen ? 2 : 1;
      context.strokeRect(left + 0.5, band.y + 1, Math.max(2, one.width - 1), band.height - 2);
      context.lineWidth = 1;
    }
  }
}

/** A box of a class with its second sign where it is large enough for one; its letter only if it is `lettered`. */
export function paintBox(
  context: CanvasRenderingContext2D,
  colors: Colors,
  cls: string,
  x: number,
  y: number,
  width: number,
  height: number,
  alpha: number,
  plain = false,
  lettered = true,
): void {
  const fill = colors.fill(cls);
  context.globalAlpha = alpha;
  context.fillStyle = !plain && fill.pattern && width >= 5 ? fill.pattern : fill.color;
  // Too narrow for a border: the class's own colour, or it would be seen as nothing.
  if (width < 3) context.fillStyle = cls === "idle" ? colors.line : fill.solid;
  context.fillRect(x, y, width, height);
  if (width >= 3 && (cls === "host" || cls === "idle")) {
    context.strokeStyle = fill.solid;
    context.strokeRect(Math.round(x) + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
  }
  context.globalAlpha = 1;
  if (fill.edge && width >= 2) {
    context.fillStyle = colors.text;
    context.fillRect(x, y, width, 2);
  }
  if (lettered && fill.letter && width >= 14 && width <= 36 && height >= LETTER_HEIGHT) {
    context.fillStyle = fill.text;
    context.fillText(fill.letter, x + width / 2 - 4, y + height / 2 + 1);
  }
}

/** What a text on a pattern stands on, or it could not be read. */
function backingOf(fill: Fill): string {
  return fill.pattern ? fill.color : "";
}

/** Characters that fit into the part of a box that is in view. */
function charactersIn(x: number, width: number): number {
  return Math.floor((x + width - Math.max(x, GUTTER) - 7) / 6);
}

function paintText(
  context: CanvasRenderingContext2D,
  text: string,
  x: number,
  width: number,
  band: Band,
  color: string,
  backing = "",
): void {
  const left = Math.max(x, GUTTER) + 4;
  const room = x + width - left - 3;
  const most = charactersIn(x, width);
  if (most < Math.min(4, text.length)) return;
  const shown = middleCut(visibleText(text.slice(0, 400)), most);
  if (backing) {
    context.fillStyle = backing;
    context.fillRect(left - 2, band.y + 2, Math.min(room, context.measureText(shown).width) + 4, band.height - 5);
  }
  context.fillStyle = color;
  context.fillText(shown, left, band.y + band.height / 2 + 0.5, room);
}

function paintMark(context: CanvasRenderingContext2D, { state, view, height }: Picture, colors: Colors): void {
  if (!state.mark) return;
  const [from, to] = state.mark.map((at) => GUTTER + toPixel(view, at)) as [number, number];
  const left = Math.max(GUTTER, from);
  const right = Math.min(GUTTER + view.width, to);
  if (right <= left) return;
  context.fillStyle = colors.link;
  context.globalAlpha = 0.14;
  context.fillRect(left, AXIS_HEIGHT, right - left, height);
  context.globalAlpha = 1;
  context.fillRect(left, AXIS_HEIGHT - 4, right - left, 3);
  const text = formatDuration(state.mark[1] - state.mark[0]);
  context.fillStyle = colors.background;
  context.fillRect(left, 0, context.measureText(text).width + 8, 18);
  context.fillStyle = colors.link;
  context.fillText(text, left + 4, 10);
}
