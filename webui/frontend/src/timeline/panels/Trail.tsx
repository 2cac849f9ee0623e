/** The views that the reader came through, each within the one before: a click goes back out to it. */

import { formatDuration } from "@/units/durations";
import type { TimelineState } from "../state";

interface Props {
  state: TimelineState;
  wholeNs: number;
  onChange: (part: Partial<TimelineState>) => void;
}

export function Trail({ state, wholeNs, onChange }: Props) {
  const { trail, start, end } = state;
  const outer = trail.map((view, at) => ({ view, at })).filter(({ view }) => view[0] <= start && view[1] >= end && view[1] - view[0] < wholeNs);
  const isPart = end > start && end - start < 0.99 * wholeNs;
  return (
    <nav className="timeline-trail" aria-label="Zoom">
      <button type="button" className="as-link" disabled={!isPart} onClick={() => onChange({ start: 0, end: 0, trail: [] })}>
        Whole time, {formatDuration(wholeNs)}
      </button>
      {outer.map(({ view, at }) => (
        <span key={at}>
          {" › "}
          <button type="button" className="as-link" onClick={() => onChange({ start: view[0], end: view[1], trail: trail.slice(0, at) })}>
            {formatDuration(view[1] - view[0])}
          </button>
        </span>
      ))}
      {isPart && <span aria-current="location"> › {formatDuration(end - start)}</span>}
    </nav>
  );
}
