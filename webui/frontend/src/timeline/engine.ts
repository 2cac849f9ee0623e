/**
 * The one animation loop behind a canvas: state and view in, picture out.
 *
 * Guarantees: at most one frame is asked for at a time; nothing of the page's layout is read in it; a pan or a zoom moves
 * the view at once, and is told to the page when it rests.
 */

import type { Fleet } from "./format/fleet";
import { size } from "./draw/canvas";
import { readColors, type Colors } from "./draw/fills";
import { MINIMAP_HEIGHT, overviewRows, paintMinimap, windowOf, wholeView } from "./draw/minimap";
import { paint } from "./draw/painter";
import { AXIS_HEIGHT, GUTTER, type Picture } from "./draw/picture";
import { anchorAt, bandAt, suggestRank, type Band } from "./layout/bands";
import type { Counter } from "./layout/counters";
import { rectangleAt, type Rectangle } from "./layout/rectangles";
import { buildScene, type RankScene, type Scene } from "./layout/scene";
import { cellsByRow } from "./layout/shares";
import { searchNames } from "./search";
import { isStep, leadTo, type TimelineState } from "./state";
import { around, isWithin, pan, toNs, within, zoom, type Span, type View } from "./view";
import type { TimelineStore } from "./worker/store";

const REST_MS = 180;

export interface Hit {
  band: Band;
  rank: number | null;
  rectangle: Rectangle | null;
  scene: RankScene | null;
  /** The time under the pointer, ns from the fleet's origin. */
  at: number;
  /** Of a strip: the place of the iteration or piece of a stage; of a folded rank: that of the cell. -1: none is there. */
  span: number;
}

export interface Drawn {
  scene: Scene;
  milliseconds: number;
}

export class Engine {
  readonly #context: CanvasRenderingContext2D;
  #overview: CanvasRenderingContext2D | null = null;
  readonly #store: TimelineStore;
  readonly #onState: (state: TimelineState, isStep: boolean) => void;
  readonly #onDrawn: (drawn: Drawn) => void;
  #state: TimelineState;
  #view: View = { start: 0, end: 1, width: 1 };
  #height = 1;
  #scrollTop = 0;
  #frame = 0;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #colors: Colors | null = null;
  #cells: number[][] = [];
  #cellsOf: Fleet | null = null;
  #scene: Scene | null = null;
  #hover: Picture["hover"] = null;
  #lookedAt: number | undefined;
  #counters: ReadonlyMap<number, readonly Counter[]> = new Map();
  #sought: { rank: number; start: number; name: number } | null = null;

  /** `onState` is given a state that the reader made here, and whether by a step (isStep); `onDrawn` each picture. */
  constructor(
    context: CanvasRenderingContext2D,
    store: TimelineStore,
    state: TimelineState,
    onState: (state: TimelineState, isStep: boolean) => void,
    onDrawn: (drawn: Drawn) => void,
  ) {
    this.#context = context;
    this.#store = store;
    this.#state = state;
    this.#onState = onState;
    this.#onDrawn = onDrawn;
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#rest);
  }

  get state(): TimelineState {
    return this.#state;
  }

  get view(): View {
    return this.#view;
  }

  get scene(): Scene | null {
    return this.#scene;
  }

  /** The rank that keys are about: of the chosen event, else the one that was opened last, folded or not; else the one to look at first. */
  rankLookedAt(): number | undefined {
    const { chosen, open } = this.#state;
    const header = this.#store.fleet?.value?.header;
    return chosen?.rank ?? open.at(-1) ?? this.#lookedAt ?? (header && suggestRank(header));
  }

  /** The rank of a row, if its events are here. */
  rankOfRow(row: number): number | undefined {
    const ranks = this.#store.fleet?.value?.header.ranks;
    return ranks?.detail[row] === "full" ? ranks.rank[row] ?? undefined : undefined;
  }

  /** The state that the page wants. */
  adopt(state: TimelineState): void {
    this.#state = state;
    this.draw();
  }

  /** The sampled quantities of open ranks. */
  setCounters(counters: ReadonlyMap<number, readonly Counter[]>): void {
    this.#counters = counters;
    this.draw();
  }

  /** Forgets the colours: the theme is another. */
  recolor(): void {
    this.#colors = null;
    this.draw();
  }

  resize(width: number, height: number): void {
    size(this.#context, width, height);
    this.#view = { ...this.#view, width: Math.max(1, width - GUTTER) };
    this.#height = height;
    this.#sizeOverview();
    this.draw();
  }

  /** Draws the whole time on a canvas of its own from now on. */
  showOverview(context: CanvasRenderingContext2D): void {
    this.#overview = context;
    this.#sizeOverview();
    this.draw();
  }

  #sizeOverview(): void {
    if (!this.#overview) return;
    const width = this.#view.width + GUTTER;
    size(this.#overview, width, MINIMAP_HEIGHT);
    this.#overview.canvas.style.width = `${width}px`;
  }

  /** From which to which pixel of the overview the view goes. */
  overviewWindow(): [number, number] {
    const fleet = this.#store.fleet?.value;
    return fleet ? windowOf(this.#span(), wholeView(fleet, this.#view.width)) : [0, 0];
  }

  /** The time at a pixel of the overview's axis. */
  overviewTimeAt(pixel: number): number {
    return toNs({ ...this.whole(), width: this.#view.width }, pixel);
  }

  /** Brings a time into the middle of the view. */
  center(at: number): void {
    const { start, end } = this.#span();
    this.pan((at - (start + end) / 2) / (end - start));
  }

  /** The rows are scrolled to this height; where the reader did that, the state says so. */
  scroll(top: number, isReaders: boolean): void {
    this.#scrollTop = top;
    if (isReaders && this.#scene) this.change({ scroll: anchorAt(this.#scene.layout, top) }, true);
    else this.draw();
  }

  /** Asks for a frame, unless one is asked for. */
  draw(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  /** The time of all iterations, which begins at 0. */
  whole(): Span {
    const header = this.#store.fleet?.value?.header;
    return { start: 0, end: Math.max(1, header?.span_ns ?? 1) };
  }

  /** All time that holds something: the iterations, and what the ranks in view ran, and were sampled, before the first and after the last. */
  limits(): Span {
    return [...(this.#scene?.ranks.values() ?? [])].reduce(
      ({ start, end }, { header, offset, counters }) => ({
        start: Math.min(start, offset, ...counters.map(({ at }) => at[0] ?? start)),
        end: Math.max(end, offset + header.span_ns, ...counters.map(({ at }) => at[at.length - 1] ?? end)),
      }),
      this.whole(),
    );
  }

  /** Changes the state as the reader wants, and tells the page: at once, or when it rests. */
  change(part: Partial<TimelineState>, soon = false): void {
    if (part.open && part.open.length < this.#state.open.length) this.#lookedAt = this.rankLookedAt();
    const wasStep = !soon && isStep(this.#state, part);
    this.#state = { ...this.#state, ...part };
    this.draw();
    clearTimeout(this.#rest);
    if ("start" in part || "chosen" in part) this.#sought = null;
    if (soon) this.#rest = setTimeout(() => this.#onState(this.#state, false), REST_MS);
    else this.#onState(this.#state, wasStep);
  }

  pan(share: number): void {
    this.change(pan(this.#span(), this.limits(), share), true);
  }

  zoom(factor: number, pixel = GUTTER + this.#view.width / 2): void {
    const span = this.#span();
    const center = toNs({ ...span, width: this.#view.width }, pixel - GUTTER);
    this.change(zoom(span, this.limits(), factor, center), true);
  }

  fit(span: Span): void {
    const next = around(span, this.limits());
    const { start, end } = this.#span();
    this.change({ ...next, trail: leadTo(this.#state.trail, [start, end], next) });
  }

  /**
   * Shows an event with `room` durations beside it, and chooses it as soon as it is here; ns from the rank's origin.
   * `offset` brings these to the fleet's axis; of an open rank it is known.
   */
  choose(rank: number, start: number, duration: number, name: number, room = 0, offset = this.#scene?.ranks.get(rank)?.offset ?? 0): void {
    const begin = start + offset;
    this.fit({ start: begin - room * duration, end: begin + (1 + room) * duration });
    this.#sought = { rank, start, name };
  }

  /** What lies at a pixel of the canvas. */
  hit(x: number, y: number): Hit | null {
    const fleet = this.#store.fleet?.value;
    if (!this.#scene || !fleet || y < AXIS_HEIGHT) return null;
    const band = bandAt(this.#scene.layout, y - AXIS_HEIGHT, this.#scrollTop);
    if (!band) return null;
    const rank = fleet.header.ranks.rank[band.row] ?? null;
    const scene = rank === null ? null : this.#scene.ranks.get(rank) ?? null;
    const rectangle = band.kind === "lane" ? rectangleAt(scene?.lanes[band.lane] ?? [], x - GUTTER) ?? null : null;
    const at = this.timeAt(x);
    return { band, rank, rectangle, scene, at, span: x < GUTTER ? -1 : this.#spanAt(fleet, band, scene, at) };
  }

  #spanAt({ cells }: Fleet, band: Band, scene: RankScene | null, at: number): number {
    if (band.kind === "rank")
      return (this.#cells[band.row] ?? []).find((cell) => isWithin(cells.start_ns![cell]!, cells.duration_ns![cell]!, at)) ?? -1;
    if (band.kind === "lane" || band.kind === "counter" || !scene) return -1;
    const { start_ns: starts, duration_ns: durations } = band.kind === "stages" ? scene.header.stage_pieces : scene.header.iterations;
    return starts.findIndex((start, place) => isWithin(start + scene.offset, durations[place]!, at));
  }

  /** Marks what the pointer is over. */
  hover(hit: Hit | null): void {
    const next = hit?.rectangle ? { band: hit.band, rectangle: hit.rectangle } : null;
    if (next?.rectangle === this.#hover?.rectangle) return;
    this.#hover = next;
    this.draw();
  }

  timeAt(x: number): number {
    return toNs(this.#view, x - GUTTER);
  }

  /** What the state says is in view: several keys and turns of the wheel may come before the next frame. */
  #span(): Span {
    const { start, end } = this.#state;
    return end > start ? within({ start, end }, this.limits()) : this.whole();
  }

  #paint(): void {
    const fleet = this.#store.fleet?.value;
    if (!fleet) return;
    const began = performance.now();
    if (this.#cellsOf !== fleet) {
      this.#cellsOf = fleet;
      this.#cells = cellsByRow(fleet.cells, fleet.header.ranks.rank.length);
    }
    this.#view = { ...this.#span(), width: this.#view.width };
    this.#colors ??= readColors(this.#context);
    const scene = buildScene(fleet, this.#state, this.#view, {
      headerOf: (rank) => this.#store.rank(rank)?.value,
      tileOf: (rank, level, tile) => this.#store.tile(rank, level, tile),
      problemOf: (rank, level, tile) => this.#store.problemOf(rank, level, tile),
      countersOf: (rank) => this.#counters.get(rank) ?? [],
    });
    this.#scene = scene;
    paint(
      this.#context,
      {
        fleet,
        cells: this.#cells,
        scene,
        state: this.#state,
        view: this.#view,
        height: this.#height,
        scrollTop: this.#scrollTop,
        hover: this.#hover,
        found: this.#findNames(scene),
      },
      this.#colors,
    );
    if (this.#overview) {
      const rows = overviewRows(fleet, this.#state.open);
      paintMinimap(this.#overview, { fleet, cells: this.#cells, rows, view: this.#view, width: this.#view.width }, this.#colors);
    }
    this.#store.want(scene.wanted);
    this.#findSought(scene);
    this.#onDrawn({ scene, milliseconds: performance.now() - began });
  }

  #findSought(scene: Scene): void {
    const sought = this.#sought;
    const lanes = sought && scene.ranks.get(sought.rank)?.lanes;
    const lane = lanes ? lanes.findIndex((list) => list.some((one) => one.start === sought.start && one.name === sought.name)) : -1;
    if (sought && lane >= 0) this.change({ chosen: { rank: sought.rank, lane, start: sought.start } }, true);
  }

  #findNames(scene: Scene): Picture["found"] {
    if (!this.#state.search.trim()) return null;
    return new Map(
      [...scene.ranks].map(([rank, { header }]) => [
        rank,
        new Set(searchNames(header, this.#state.search).flatMap((found) => found.names)),
      ]),
    );
  }
}
