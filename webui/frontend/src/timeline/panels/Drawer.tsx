/** The chosen event, in a drawer that stays in view: what it is, what led to it, what it led to; each is a link into the picture. */

import { useEffect, useRef, useState } from "react";
import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import { plural } from "@/units/quantities";
import type { Engine } from "../engine";
import type { Fleet } from "../format/fleet";
import { fullRanks } from "../layout/bands";
import { launchOf } from "../layout/launches";
import type { Rectangle } from "../layout/rectangles";
import { offsetOf, type RankScene } from "../layout/scene";
import { openRank } from "../pointer";
import { findLast, groupOf, MOST_RANKS, type Collective, type RankEvent } from "../worker/collective";
import type { EventArguments } from "../worker/eventArguments";
import type { TimelineStore } from "../worker/store";
import type { PlacedEvent } from "../worker/underWay";
import { Details } from "./Details";

interface Props {
  engine: Engine;
  store: TimelineStore;
  fleet: Fleet;
  rank: number;
  scene: RankScene;
  lane: number;
  rectangle: Rectangle;
  onClose: () => void;
}

const MOST_LAUNCHED = 6;
const ROOM = 3;
const STAY_MS = 300;

export function Drawer(props: Props) {
  const { rank, lane, rectangle } = props;
  // Of another event nothing that was read of this one stays.
  return <Chosen key={`${rank} ${lane} ${rectangle.start}`} {...props} />;
}

function Chosen(props: Props) {
  const { engine, rank, scene, lane, rectangle: one } = props;
  const go = ({ start, duration, name }: Pick<PlacedEvent, "start" | "duration" | "name">) => engine.choose(rank, start, duration, name, ROOM);
  const isCollective = scene.header.classes[scene.header.names.cls[one.name]!]!.startsWith("communication");
  const reading = useArguments(props, isCollective);
  return (
    <aside className="timeline-chosen" aria-label="Chosen event">
      <button type="button" className="small" onClick={props.onClose}>
        Close
      </button>
      <div aria-live="polite">
        <Details rank={rank} scene={scene} lane={lane} rectangle={one} whole />
      </div>
      <Way {...props} onGo={go} />
      <Launched {...props} onGo={go} />
      {isCollective && reading.found !== undefined && <OtherRanks {...props} found={reading.found} />}
      <AllArguments {...reading} />
    </aside>
  );
}

interface WayProps extends Props {
  onGo: (event: PlacedEvent) => void;
}

/** What launched it, or what it lies within: the way down from the outermost event, each step a link. */
function Way({ store, rank, scene, lane, rectangle, onGo }: WayProps) {
  const [events, setEvents] = useState<PlacedEvent[]>([]);
  const { header } = scene;
  const launch = launchOf(rectangle);
  const isThread = header.tracks.kind[header.lanes.track[lane]!] === "thread";
  const from = launch ?? (isThread ? { at: rectangle.start, lane } : undefined);
  const depth = launch ? Number.POSITIVE_INFINITY : header.lanes.depth[lane]!;
  useEffect(() => {
    let isWanted = true;
    if (from)
      store.underWay(rank, from.lane, from.at).then(
        (found) => isWanted && setEvents(found.filter((one) => header.lanes.depth[one.lane]! < depth)),
        () => {}, // of a trace without its single events this line alone is missing
      );
    return () => {
      isWanted = false;
    };
    // The drawer is made anew for each event.
    // oxlint-disable-next-line react/exhaustive-deps
  }, []);
  if (events.length === 0) return null;
  return (
    <p>
      {launch ? "launched by" : "within"}{" "}
      {events.map((event, at) => (
        <span key={event.lane}>
          {at > 0 && " › "}
          <button type="button" className="as-link" onClick={() => onGo(event)}>
            <Name text={shortName(scene, event.name)} whole={header.names.text[event.name]!} most={80} />
          </button>
        </span>
      ))}
    </p>
  );
}

/** What an event of the host launched, by name; each leads to the first of its name. */
function Launched({ store, rank, scene, lane, rectangle: { start, duration }, onGo }: WayProps) {
  const [events, setEvents] = useState<PlacedEvent[]>([]);
  const { header } = scene;
  const isThread = header.tracks.kind[header.lanes.track[lane]!] === "thread" && header.kind === "gpu" && header.whole;
  useEffect(() => {
    let isWanted = true;
    if (isThread)
      store.launched(rank, lane, start, start + duration).then(
        (found) => isWanted && setEvents(found),
        () => {}, // of a part that cannot be read this line alone is missing
      );
    return () => {
      isWanted = false;
    };
    // The drawer is made anew for each event.
    // oxlint-disable-next-line react/exhaustive-deps
  }, []);
  if (events.length === 0) return null;
  const names = new Map<number, PlacedEvent[]>();
  for (const event of events) {
    const of = names.get(event.name);
    if (of) of.push(event);
    else names.set(event.name, [event]);
  }
  const total = (of: PlacedEvent[]) => of.reduce((sum, one) => sum + one.duration, 0);
  const longest = [...names.values()].toSorted((one, other) => total(other) - total(one));
  return (
    <p>
      launches{" "}
      {longest.slice(0, MOST_LAUNCHED).map((of, at) => (
        <span key={of[0]!.name}>
          {at > 0 && ", "}
          <button type="button" className="as-link" onClick={() => onGo(of[0]!)}>
            <Name text={shortName(scene, of[0]!.name)} whole={header.names.text[of[0]!.name]!} most={60} />
          </button>
          {of.length > 1 && ` × ${of.length.toLocaleString("en")}`} ({formatDuration(total(of))})
        </span>
      ))}
      {longest.length > MOST_LAUNCHED && ` and ${longest.length - MOST_LAUNCHED} names more`}
    </p>
  );
}

/** The same collective on the other ranks of its group, and who came last. */
function OtherRanks({ engine, store, fleet, rank, rectangle, found: own }: Props & { found: EventArguments | null }) {
  const [found, setFound] = useState<Collective | null>(null);
  const [message, setMessage] = useState("");
  const group = groupOf(own);
  const full = fullRanks(fleet.header);
  const all = [...new Set([rank, ...fleet.header.late, ...engine.state.open, ...full])].filter((one) => full.has(one) && (!group || group.includes(one)));
  const wanted = all.slice(0, MOST_RANKS).join();
  const isAlone = wanted === String(rank);
  useEffect(() => {
    let isWanted = true;
    const tell = (text: string) => isWanted && setMessage(text);
    if (isAlone) return undefined;
    store.collective(rank, rectangle.name, rectangle.start, wanted.split(",").map(Number)).then(
      (answer) => {
        if (isWanted) setFound(answer);
        tell(answer ? "" : "It lies outside of the iterations, so it is not looked for on other ranks.");
      },
      (error: unknown) => tell(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      isWanted = false;
    };
    // The open ranks change when a link is followed: what was found stays.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [store, rank, rectangle.name, rectangle.start]);
  if (!found || isAlone) return message ? <p className="quiet">{message}</p> : null;
  const last = findLast(found.events);
  const go = (event: RankEvent) => {
    if (!engine.state.open.includes(event.rank)) openRank(engine, event.rank);
    engine.choose(event.rank, event.start, event.duration, event.name, ROOM, offsetOf(fleet, event.header));
  };
  return (
    <div role="group" aria-label="The same collective on other ranks">
      <p>
        {last === null ? (
          "All were in it for about as long: none came clearly last."
        ) : (
          <>
            <strong>{group ? `Rank ${last} came last` : `Rank ${last} was in it for the shortest time`}</strong>
            {group ? ": it was in it for the shortest time, the others waited for it." : ": if all ranks share its process group, which the trace does not tell, the others waited for it."}
          </>
        )}{" "}
        <span className="quiet">
          Number {found.position} of its name in iteration {found.iteration} of each rank
          {group && ` of ${typeof own?.["Process Group Name"] === "string" ? own["Process Group Name"] : "its group"}`}
          {all.length > MOST_RANKS && `, of ${MOST_RANKS} of ${all.length} ranks`}
          {found.missing.length > 0 && `; not on rank ${found.missing.join(", ")}`}.
        </span>
      </p>
      <ul className="timeline-others">
        {found.events.map((event) => (
          <li key={event.rank}>
            <button type="button" className="as-link" aria-current={event.rank === rank ? "true" : undefined} onClick={() => go(event)}>
              rank {event.rank}
            </button>{" "}
            {formatDuration(event.duration)}
            {event.rank === last && (group ? " · last" : " · shortest")}
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Reading {
  /** undefined: not read; null: the trace has no such event. */
  found: EventArguments | null | undefined;
  message: string;
  read: () => void;
}

/** Reads the arguments of an event when wanted, or at once where `isWanted`, as soon as the reader stays with it. */
function useArguments({ store, rank, scene, rectangle }: Props, isWanted: boolean): Reading {
  const [found, setFound] = useState<EventArguments | null>();
  const [message, setMessage] = useState("");
  const cancel = useRef<(() => void) | null>(null);
  const read = () => {
    setMessage(`Reading the trace of rank ${rank} …`);
    const under = store.eventArguments(rank, scene.header.names.text[rectangle.name]!, rectangle.start);
    cancel.current = under.cancel;
    under.answer.then(
      (answer) => {
        setFound(answer);
        setMessage(answer === null ? "The trace has no such event." : Object.keys(answer).length ? "" : "It has no arguments.");
      },
      (error: unknown) => {
        setFound(null);
        setMessage(error instanceof Error ? error.message : String(error));
      },
    );
  };
  useEffect(() => {
    const timer = isWanted ? setTimeout(read, STAY_MS) : undefined;
    return () => {
      clearTimeout(timer);
      cancel.current?.();
    };
    // The drawer is made anew for each event.
    // oxlint-disable-next-line react/exhaustive-deps
  }, []);
  return { found, message, read };
}

function AllArguments({ found, message, read }: Reading) {
  if (found && Object.keys(found).length)
    return (
      <dl className="timeline-arguments" aria-label={plural(Object.keys(found).length, "argument")}>
        {Object.entries(found).map(([name, value]) => (
          <div key={name}>
            <dt>
              <Name text={name} most={60} />
            </dt>
            <dd>
              <Name text={typeof value === "string" ? value : JSON.stringify(value)} most={400} code />
            </dd>
          </div>
        ))}
      </dl>
    );
  return (
    <p role="status" className="quiet">
      {message || (
        <button type="button" className="small" onClick={read}>
          All arguments
        </button>
      )}
    </p>
  );
}

function shortName({ header: { names } }: RankScene, name: number): string {
  return names.short[name] || names.text[name]!;
}
