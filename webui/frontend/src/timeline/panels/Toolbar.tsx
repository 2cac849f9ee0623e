/** The controls above the picture: which ranks, what is left out, search, and what keys there are. */

import type { RefObject } from "react";
import type { Fleet } from "../format/fleet";
import { typicalRank } from "../layout/bands";
import type { Fold, TimelineState } from "../state";

interface Props {
  fleet: Fleet;
  state: TimelineState;
  /** There are events to cut. */
  hasEvents: boolean;
  searchField: RefObject<HTMLInputElement | null>;
  onChange: (part: Partial<TimelineState>) => void;
  /** Opens what is in view in Perfetto. */
  onCut: () => void;
  /** Shows the list of keys. */
  onKeys: () => void;
}

const FOLDS: [Fold, string][] = [
  ["all", "All ranks"],
  ["late", "Late and median rank"],
  ["one", "One rank"],
];

export function Toolbar({ fleet, state, hasEvents, searchField, onChange, onCut, onKeys }: Props) {
  const choose = (fold: Fold) => {
    const { late } = fleet.header;
    const typical = typicalRank(fleet.header);
    const compared = [...late.slice(0, 1), ...(typical === null ? [] : [typical])];
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
      <button type="button" disabled={!hasEvents} onClick={onCut}>
        Open this part in Perfetto
      </button>
      <button type="button" onClick={onKeys}>
        Keys ( ? )
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
    </div>
  );
}
