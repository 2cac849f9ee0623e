/** Which tracks of the open ranks are shown, and which stay above the rows while these are scrolled. */

import { Name } from "@/parts/Name";
import { counterLabel, laneOrder } from "../layout/bands";
import type { RankScene } from "../layout/scene";
import { counterKey, trackKey, trackLabel } from "../layout/tracks";
import type { TimelineState } from "../state";

interface Props {
  ranks: ReadonlyMap<number, RankScene>;
  state: TimelineState;
  onChange: (part: Partial<TimelineState>) => void;
}

export function Tracks({ ranks, state, onChange }: Props) {
  const changed = state.hidden.length + state.pinned.length;
  const toggled = (list: string[], key: string) => (list.includes(key) ? list.filter((one) => one !== key) : [...list, key]);
  return (
    <details className="timeline-tracks">
      <summary>Tracks{changed > 0 && ` (${changed} changed)`}</summary>
      {ranks.size === 0 && <p className="quiet">Open a rank to choose among its tracks.</p>}
      {[...ranks].map(([rank, scene]) => (
        <fieldset key={rank}>
          <legend>Rank {rank}</legend>
          {tracksOf(rank, scene).map(([key, name]) => (
            <div key={key}>
              <label>
                <input type="checkbox" checked={!state.hidden.includes(key)} onChange={() => onChange({ hidden: toggled(state.hidden, key) })} />{" "}
                <Name text={name} most={40} />
              </label>
              <button
                type="button"
                className="small"
                aria-pressed={state.pinned.includes(key)}
                aria-label={`Pin ${name} of rank ${rank}`}
                onClick={() => onChange({ pinned: toggled(state.pinned, key) })}
              >
                {state.pinned.includes(key) ? "Pinned" : "Pin"}
              </button>
            </div>
          ))}
        </fieldset>
      ))}
      {changed > 0 && (
        <button type="button" className="small" onClick={() => onChange({ hidden: [], pinned: [] })}>
          Show all, pin none
        </button>
      )}
    </details>
  );
}

function tracksOf(rank: number, { header, counters }: RankScene): [key: string, name: string][] {
  const tracks = [...new Set(laneOrder(header).map((lane) => header.lanes.track[lane]!))];
  return [
    ...counters.map(({ name }): [string, string] => [counterKey(rank, name), counterLabel(name)]),
    ...tracks.map((track): [string, string] => [trackKey(rank, track), trackLabel(header, track)]),
  ];
}
