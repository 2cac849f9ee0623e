/** Carries out what a key asks for. */

import type { Engine } from "./engine";
import type { Command } from "./keyboard";
import type { Band } from "./layout/bands";
import type { Rectangle } from "./layout/rectangles";
import { toggleRank } from "./pointer";

/** What a key asks of the page around the picture: the list of keys, the cursor in the field of the search, the next event that it found. */
export interface Around {
  help: () => void;
  search: () => void;
  find: (forward: boolean) => void;
}

/** Does a command. */
export function obey(engine: Engine, command: Command, around: Around): void {
  const { state, scene } = engine;
  switch (command.kind) {
    case "pan":
      return engine.pan(command.share);
    case "zoom":
      return engine.zoom(command.factor);
    case "search":
      return around.search();
    case "help":
      return around.help();
    case "next":
      return around.find(true);
    case "previous":
      return around.find(false);
    case "clear":
      return engine.change({ chosen: null, mark: null, search: "" });
    case "edge":
      return moveEdge(engine, command.end);
    case "longest":
      return engine.change({ longest: !state.longest });
    case "fold":
      return toggleRank(engine, engine.rankLookedAt());
    case "rank":
      return goToRank(engine, command.down);
    case "step":
      return step(engine, command.along, command.across);
    default: {
      const span = chosenSpan(engine);
      if (command.kind === "mark") engine.change({ mark: span ? [span.start, span.end] : [engine.view.start, engine.view.end] });
      else if (span) engine.fit(span);
      else if (scene) engine.change({ start: 0, end: 0 });
    }
  }
}

/** Moves the beginning or the end of the measured time to the middle of the view. */
function moveEdge(engine: Engine, isEnd: boolean): void {
  const { state, view } = engine;
  const middle = (view.start + view.end) / 2;
  const [start, end] = state.mark ?? [view.start, view.end];
  const [from, to] = isEnd ? [start, middle] : [middle, end];
  engine.change({ mark: [Math.min(from, to), Math.max(from, to)] });
}

/** Opens the next rank whose events are here, and folds the one that was looked at. */
function goToRank(engine: Engine, down: -1 | 1): void {
  const { scene, state } = engine;
  const here = engine.rankLookedAt();
  const rows = scene?.layout.bands.flatMap((band) => (band.kind === "rank" ? [band] : [])) ?? [];
  const ranks = rows.flatMap(({ row }) => engine.rankOfRow(row) ?? []);
  const next = ranks[ranks.indexOf(here ?? -1) + (here !== undefined && state.open.includes(here) ? down : 0)];
  if (next === undefined) return;
  engine.change({ open: [...state.open.filter((rank) => rank !== here && rank !== next), next], chosen: null });
}

/** The time of the chosen event on the fleet's axis. */
export function chosenSpan({ state, scene }: Engine): { start: number; end: number } | null {
  const { chosen } = state;
  const rank = chosen ? scene?.ranks.get(chosen.rank) : undefined;
  const one = chosen && rank?.lanes[chosen.lane]?.find((each) => each.start === chosen.start);
  if (!rank || !one) return null;
  return { start: one.start + rank.offset, end: one.start + one.duration + rank.offset };
}

type Lane = Band & { kind: "lane" };

/** Chooses the next event of the lane, or the nearest of the next lane; where none is chosen, pans, or chooses one. */
function step(engine: Engine, along: number, across: number): void {
  const { state, scene } = engine;
  const { chosen } = state;
  const lanes = [...(scene?.layout.pinned ?? []), ...(scene?.layout.bands ?? [])].flatMap((band) => (band.kind === "lane" ? [band] : []));
  const rank = chosen ? scene?.ranks.get(chosen.rank) : undefined;
  const list = chosen ? rank?.lanes[chosen.lane] ?? [] : [];
  const at = list.findIndex((one) => one.start === chosen?.start);
  const next = list[at + along];
  if (along) {
    if (chosen && at >= 0 && next) engine.change({ chosen: { ...chosen, start: next.start } });
    else engine.pan(along * 0.1);
    return;
  }
  if (!chosen || !rank || at < 0) {
    chooseNearest(engine, lanes, (engine.view.start + engine.view.end) / 2);
    return;
  }
  const here = lanes.findIndex((band) => band.rank === chosen.rank && band.lane === chosen.lane);
  const beside = lanes[here + across];
  if (beside) chooseNearest(engine, [beside], list[at]!.start + rank.offset + list[at]!.duration / 2);
}

/** Chooses the event nearest to a time of the first of these lanes that has one. */
function chooseNearest(engine: Engine, lanes: Lane[], middle: number): void {
  for (const { rank, lane } of lanes) {
    const scene = engine.scene!.ranks.get(rank);
    const near = (one: Rectangle) => Math.abs(one.start + one.duration / 2 + scene!.offset - middle);
    const nearest = scene?.lanes[lane]?.reduce<Rectangle | null>(
      (best, one) => (!best || near(one) < near(best) ? one : best),
      null,
    );
    if (!nearest) continue;
    engine.change({ chosen: { rank, lane, start: nearest.start } });
    return;
  }
}
