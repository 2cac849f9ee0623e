/**
 * The timeline of a capture: ranks as rows, under an open one its iterations, stages, streams and threads.
 *
 * `source` is the address of the timeline's files, with a slash at its end; `state` is what is shown, as the page has it
 * in its address; `onStateChange` is given what the reader made of it, and whether that is a step, which Back undoes: panning,
 * zooming and typing are none. `sampled` are the lines of code of the report at
 * the address `report`.
 */

import { useEffect, useEffectEvent, useMemo, useRef, useState, type CSSProperties } from "react";
import { openInPerfetto } from "@/parts/perfetto";
import { useTheme } from "@/theme/theme";
import { obey } from "./commands";
import { AXIS_HEIGHT } from "./draw/picture";
import { Engine, type Hit } from "./engine";
import type { RankHeader } from "./format/rank";
import { goToEvent, goToNext } from "./finding";
import { focusOf } from "./focus";
import { goTo, type Goal } from "./goal";
import { useCounters } from "./useCounters";
import { commandOf, isMeant } from "./keyboard";
import type { RankScene } from "./layout/scene";
import { describeFleet, fullRanks, heightOf, suggestRank } from "./layout/bands";
import { Arguments } from "./panels/Arguments";
import { Drawer } from "./panels/Drawer";
import { Found } from "./panels/Found";
import { Hover, says } from "./panels/Hover";
import { Keys, readEverywhere, storeEverywhere } from "./panels/Keys";
import { Legend } from "./panels/Legend";
import { Minimap } from "./panels/Minimap";
import { Notes } from "./panels/Notes";
import { Range } from "./panels/Range";
import { Toolbar } from "./panels/Toolbar";
import { Tracks } from "./panels/Tracks";
import { Trail } from "./panels/Trail";
import { listen, openRank } from "./pointer";
import type { SampledLine } from "./search";
import { WHOLE, type TimelineState } from "./state";
import "./timeline.css";
import { findCollectives } from "./tree/gaps";
import { TreeGrid } from "./tree/TreeGrid";
import { TimelineStore } from "./worker/store";

interface Props {
  source: string;
  state: TimelineState;
  /** Where to go as soon as its rank is here; null once the address has a state. */
  goal: Goal | null;
  onStateChange: (state: TimelineState, isStep: boolean) => void;
  sampled: readonly SampledLine[];
  report: string;
}

const LEAST_HEIGHT = 200;
const NO_RANKS: ReadonlyMap<number, RankScene> = new Map();

export function Timeline({ source, state, goal, onStateChange, sampled, report }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const searchField = useRef<HTMLInputElement>(null);
  const engine = useRef<Engine | null>(null);
  const latestOnStateChange = useRef(onStateChange);
  const [store, setStore] = useState<TimelineStore | null>(null);
  const [height, setHeight] = useState(0);
  const [settled, setSettled] = useState(false);
  const [detail, setDetail] = useState("");
  const anchor = useRef(state.scroll);
  const [gap, setGap] = useState("");
  const [drawing, setDrawing] = useState<Engine | null>(null);
  const [hover, setHover] = useState<{ hit: Hit; x: number; y: number } | null>(null);
  const [message, setMessage] = useState("");
  const [keysOpen, setKeysOpen] = useState(false);
  const [everywhere, setEverywhere] = useState(readEverywhere);
  const [answers, setAnswers] = useState(0);
  const theme = useTheme();
  // The way to a goal is no step: Back leads past it.
  latestOnStateChange.current = (next, isStep) => onStateChange(next, isStep && goal === null);
  const reached = useRef<Goal | null>(null);

  const tell = (work: Promise<void>) => {
    setMessage("");
    work.catch((error: unknown) => setMessage(error instanceof Error ? error.message : String(error)));
  };

  useEffect(() => {
    const made = new TimelineStore(source, () => {
      engine.current?.draw();
      setAnswers((count) => count + 1);
    });
    setStore(made);
    return () => made.close();
  }, [source]);

  const ready = Boolean(store?.fleet?.value);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d", { alpha: false });
    if (!ready || !store || !element || !context || !scroll.current) return undefined;
    const made = new Engine(
      context,
      store,
      state,
      (next, isStep) => latestOnStateChange.current(next, isStep),
      ({ scene, milliseconds }) => {
        const loading = [...scene.ranks.values()].some((rank) => rank.loading);
        setHeight(scene.layout.height + scene.layout.pinnedHeight);
        setDetail(scene.wanted.map(({ rank, level, tile }) => `${rank}/${level}/${tile}`).join(" "));
        setSettled(!loading && made.state.open.every((rank) => store.rank(rank)));
        setGap([...scene.ranks.values()].map((rank) => rank.problem).find(Boolean) ?? "");
        element.dataset.rectangles = String(scene.rectangles);
        element.dataset.loading = String(loading);
        element.dataset.frame = milliseconds.toFixed(1);
      },
    );
    engine.current = made;
    setDrawing(made);
    const watch = new ResizeObserver(([entry]) => made.resize(entry!.contentRect.width, entry!.contentRect.height));
    watch.observe(scroll.current);
    const stop = listen(element, made, (hit, x, y) => setHover(hit && says(hit) ? { hit, x, y } : null));
    return () => {
      stop();
      watch.disconnect();
      made.close();
      engine.current = null;
    };
    // The state is adopted below; a new engine is for a new source alone.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [ready, store]);

  useEffect(() => engine.current?.adopt(state), [state]);
  useEffect(() => {
    // An address without a view: the rank that the report blames is open at once.
    const fleetHeader = store?.fleet?.value?.header;
    const rank = fleetHeader && suggestRank(fleetHeader);
    if (state === WHOLE && rank !== undefined) latestOnStateChange.current({ ...WHOLE, open: [rank] }, false);
  }, [ready, store, state]);
  useEffect(() => engine.current?.recolor(), [theme]);
  useEffect(() => {
    // Rows come one after the other: the picture stays where the address wants it until all are there.
    if (!anchor.current || !drawing?.scene || !scroll.current) return;
    scroll.current.scrollTop = heightOf(drawing.scene.layout, anchor.current);
    if (settled) anchor.current = null;
  }, [drawing, height, settled]);

  const fleet = store?.fleet?.value;
  const counters = useCounters(report, fleet, state.open);
  useEffect(() => drawing?.setCounters(counters), [drawing, counters]);
  const headers = useMemo(() => {
    const open = state.open.map((rank): [number, RankHeader | undefined] => [rank, store?.rank(rank)?.value]);
    return new Map(open.filter((entry): entry is [number, RankHeader] => entry[1] !== undefined));
    // Answers of the store are what changes it.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [state.open, store, answers]);
  const focus = state.chosen?.rank ?? state.open.at(-1);
  const header = focus === undefined ? undefined : store?.rank(focus)?.value;
  const collectives = useMemo(() => {
    if (!header || !store) return [];
    // The coarsest tiles have the longest events of all time, those of the view have the shorter ones there.
    const coarse = header.levels[0]?.tiles.rows.map((_, tile) => ({ rank: focus!, level: 0, tile })) ?? [];
    const near = engine.current?.scene?.wanted.filter(({ rank, level }) => rank === focus && level > 0) ?? [];
    return findCollectives(header, [...coarse, ...near].flatMap(({ rank, level, tile }) => store.tile(rank, level, tile) ?? []));
    // oxlint-disable-next-line react/exhaustive-deps
  }, [header, focus, store, answers, detail]);
  const target = goal ? goal.rank ?? (fleet && suggestRank(fleet.header)) : undefined;
  const targetHeader = target === undefined ? undefined : store?.rank(target)?.value;
  useEffect(() => {
    if (!goal || !drawing || !store || target === undefined || reached.current === goal) return;
    if (!drawing.state.open.includes(target)) drawing.change({ open: [target] }, true);
    if (!targetHeader || !drawing.scene?.ranks.has(target)) return;
    reached.current = goal;
    tell(goTo(drawing, store, target, targetHeader, goal).then(setMessage));
    // The scene that has the rank comes with an answer of the store or a picture after it.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [goal, drawing, store, target, targetHeader, answers, settled, height]);
  const press = useEffectEvent((event: KeyboardEvent) => {
    const command = commandOf(event);
    if (!command || !engine.current || event.defaultPrevented || keysOpen) return;
    if (!isMeant(command, focusOf(event.target, scroll.current), everywhere)) return;
    event.preventDefault();
    obey(engine.current, command, {
      help: () => setKeysOpen(true),
      search: () => searchField.current?.focus(),
      find: (forward) => tell(find(forward)),
    });
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => press(event);
    window.addEventListener("keydown", listener);
    return () => window.removeEventListener("keydown", listener);
  }, []);
  if (store?.fleet?.problem !== undefined)
    return (
      <p role="alert">
        The timeline cannot be shown: {store.fleet.problem}. Captures analysed by an older fleetprof have none; analyse
        the capture again to get one.
      </p>
    );
  const problem = focus === undefined ? undefined : store?.rank(focus)?.problem;
  const tree = focus === undefined || !header ? undefined : store?.nodes(focus);
  const nodes = tree?.value;
  const change = (part: Partial<TimelineState>) => engine.current?.change(part);
  const find = async (forward: boolean) => {
    if (engine.current && store) setMessage(await goToNext(engine.current, store, headers, focus, forward));
  };
  const cut = async () => {
    const { view, scene } = engine.current!;
    const parts = [...(scene?.ranks ?? [])].map(([rank, { offset }]) => ({
      rank,
      start: view.start - offset,
      end: view.end - offset,
      offset,
    }));
    const title = `ranks ${parts.map(({ rank }) => rank).join(", ")}`;
    await openInPerfetto(async () => (await store!.cut(parts)).buffer, title, "timeline.json");
  };
  const chosen = state.chosen && engine.current?.scene?.ranks.get(state.chosen.rank);
  const chosenOne = state.chosen && chosen?.lanes[state.chosen.lane]?.find((one) => one.start === state.chosen!.start);
  return (
    <div className="timeline">
      {fleet && (
        <Toolbar
          fleet={fleet}
          state={state}
          hasEvents={headers.size > 0}
          searchField={searchField}
          onChange={change}
          onCut={() => tell(cut())}
          onKeys={() => setKeysOpen(true)}
        />
      )}
      {fleet && state.search && (
        <Found
          words={state.search}
          headers={headers}
          full={fullRanks(fleet.header)}
          sampled={sampled}
          report={report}
          inArguments={
            header && store && (
              <Arguments
                key={`${focus} ${state.search}`}
                rank={focus!}
                words={state.search}
                search={(rank, words) => store.searchArguments(rank, words)}
                onChoose={(event) => engine.current && tell(goToEvent(engine.current, store, focus!, header, event))}
              />
            )
          }
          onSearch={(search) => change({ search })}
          onFind={(forward) => tell(find(forward))}
          onOpen={(rank) => engine.current && openRank(engine.current, rank)}
        />
      )}
      {fleet && <Minimap engine={drawing} state={state} wholeNs={fleet.header.span_ns} />}
      {fleet && (
        <div className="timeline-ways">
          <Trail state={state} wholeNs={fleet.header.span_ns} onChange={change} />
          <Tracks ranks={drawing?.scene?.ranks ?? NO_RANKS} state={state} onChange={change} />
        </div>
      )}
      <Legend />
      {/* The picture is worked like an application: keys and pointer belong to it while it has focus. */}
      <div
        ref={scroll}
        id="timeline-picture"
        className="timeline-scroll"
        style={{ "--content": `${Math.max(LEAST_HEIGHT, height + AXIS_HEIGHT + 2)}px` } as CSSProperties}
        role="application"
        aria-label="Timeline"
        aria-describedby="timeline-keys"
        tabIndex={0}
        onScroll={(event) => engine.current?.scroll(event.currentTarget.scrollTop, !anchor.current)}
      >
        <canvas
          ref={canvas}
          role="img"
          aria-label={fleet ? describeFleet(fleet.header) : "Loading"}
        />
        <div style={{ height: Math.max(0, height + AXIS_HEIGHT) }} aria-hidden="true" className="timeline-spacer" />
        {hover && fleet && (
          <div className="timeline-hover" style={{ left: hover.x + 14, top: hover.y + 18 }} data-left={hover.x > window.innerWidth - 480}>
            <Hover fleet={fleet} hit={hover.hit} />
          </div>
        )}
      </div>
      <p id="timeline-keys" className="quiet">
        Press ? for all keys: W A S D zoom and pan, arrows choose, / searches. Drag to pan, Ctrl and wheel to zoom, Shift and
        drag to measure, click a rank to open it.
      </p>
      <Keys
        open={keysOpen}
        everywhere={everywhere}
        onClose={() => setKeysOpen(false)}
        onEverywhere={(next) => {
          setEverywhere(next);
          storeEverywhere(next);
        }}
      />
      {store && state.mark && (
        <Range store={store} mark={state.mark} ranks={drawing?.scene?.ranks ?? NO_RANKS} onSearch={(search) => change({ search })} onClear={() => change({ mark: null })} />
      )}
      {drawing && store && fleet && chosen && chosenOne && state.chosen && (
        <Drawer
          engine={drawing}
          store={store}
          fleet={fleet}
          rank={state.chosen.rank}
          scene={chosen}
          lane={state.chosen.lane}
          rectangle={chosenOne}
          onClose={() => change({ chosen: null })}
        />
      )}
      <div aria-live="polite" className="timeline-notes">
        {message && <p role="alert">{message}</p>}
        {problem !== undefined && <p>Rank {focus} has no events here: {problem}</p>}
        {tree?.problem !== undefined && <p>The list of what rank {focus} ran is missing: {tree.problem}</p>}
        {fleet && <Notes fleet={fleet} compares={state.fold === "late"} gap={gap} />}
        {header && !header.whole && <p>This trace is too long for its single events: the finest level shows groups.</p>}
      </div>
      {focus !== undefined && header && nodes && (
        <TreeGrid
          key={focus}
          rank={focus}
          header={header}
          nodes={nodes}
          share={state.group / 100}
          collectives={collectives}
          opened={state.tree?.rank === focus ? state.tree.lines : undefined}
          onOpened={(lines) => change({ tree: { rank: focus, lines } })}
          onChoose={(start, duration, name) => engine.current?.choose(focus, start, duration, name)}
          onGo={(start, duration) => {
            const offset = engine.current?.scene?.ranks.get(focus)?.offset ?? 0;
            engine.current?.fit({ start: start + offset, end: start + offset + duration });
          }}
        />
      )}
    </div>
  );
}
