/** The controls above the picture: which ranks, what is left out, search, and what keys there are. */

import { useMemo, type RefObject } from "react";
import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import type { Fleet } from "./format/fleet";
import type { RankHeader } from "./format/rank";
import { searchNames } from "./search";
import type { Fold, TimelineState } from "./state";

interface Props {
  fleet: Fleet;
  state: TimelineState;
  header: RankHeader | undefined;
  searchField: RefObject<HTMLInputElement | null>;
  onChange: (part: Partial<TimelineState>) => void;
  /** Goes to the next event that the search finds, or to the one before. */
  onFind: (forward: boolean) => void;
  /** Opens what is in view in Perfetto. */
  onCut: () => void;
}

const FOLDS: [Fold, string][] = [
  ["all", "All ranks"],
  ["late", "Late and median rank"],
  ["one", "One rank"],
];
const SHOWN = 5;

export function Toolbar({ fleet, state, header, searchField, onChange, onFind, onCut }: Props) {
  const found = useMemo(() => (header ? searchNames(header, state.search) : []), [header, state.search]);
  const { late, median_rank: median } = fleet.header;
  const choose = (fold: Fold) => {
    const compared = [...late.slice(0, 1), ...(median === null ? [] : [median])];
    onChange({ fold, open: fold === "late" ? compared : state.open });
  };
  return (
    <div className="timeline-bar" role="toolbar" aria-label="Timeline">
      <label>
        Ranks{" "}
        <select value={state.fold} onChange={(event) => choose(event.target.value as Fold)}>
          {FOLDS.map(([fold, name]) => (
            <option key={fold} value={fold}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={state.longest}
          onChange={(event) => onChange({ longest: event.target.checked })}
        />{" "}
        Only the longest
      </label>
      <label>
        Group below {state.group} %{" "}
        <input
          type="range"
          min={0}
          max={30}
          value={state.group}
          onChange={(event) => onChange({ group: Number(event.target.value) })}
        />
      </label>
      <button type="button" onClick={() => onChange({ start: 0, end: 0 })}>
        Whole time
      </button>
      <button type="button" disabled={!header} onClick={onCut}>
        Open this part in Perfetto
      </button>
      <search>
        <input
          ref={searchField}
          type="search"
          placeholder="Search names  ( / )"
          aria-label="Search the names of events"
          maxLength={200}
          value={state.search}
          onChange={(event) => onChange({ search: event.target.value })}
          onKeyDown={(event) => {
            if (event.key === "Escape") onChange({ search: "" });
          }}
        />
      </search>
      {state.search && (
        <ul className="timeline-found" aria-label="Names found">
          {!header && <li>Open a rank to search its events.</li>}
          {header && found.length === 0 && <li>No event has such a name.</li>}
          {found.slice(0, SHOWN).map((one) => (
            <li key={one.text}>
              <button type="button" onClick={() => onChange({ search: one.text.slice(0, 200) })}>
                <Name text={one.text} most={44} /> · {one.count.toLocaleString("en")} × · {formatDuration(one.totalNs)}
              </button>
            </li>
          ))}
          {found.length > 0 && (
            <li>
              <button type="button" onClick={() => onFind(false)}>
                ‹ Previous event
              </button>{" "}
              <button type="button" onClick={() => onFind(true)}>
                Next event ›
              </button>
            </li>
          )}
          {found.length > SHOWN && <li>and {found.length - SHOWN} names more</li>}
        </ul>
      )}
    </div>
  );
}
