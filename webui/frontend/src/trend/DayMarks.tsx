// When alerts and policies acted on a workload, on the time axis of its last day: a mark for each, which names it.
import { Link } from "@tanstack/react-router";
import type { ScaleTime } from "d3-scale";
import { type ReactNode, useState } from "react";
import type { PolicyAction } from "@/api/models";
import { formatMillis } from "@/units/dates";
import { joinSentences, visibleText } from "@/units/text";
import { type DayMark, MARK_SIZE as SIZE, namedMarks, nameOf } from "./marks";

const [HEIGHT, MIDDLE] = [26, 13];

export function DayMarks({ marks, x, width, left }: { marks: readonly DayMark[]; x: ScaleTime<number, number>; width: number; left: number }) {
  const [looked, setLooked] = useState<DayMark>();
  const shown = looked ?? marks.at(-1);
  const named = namedMarks(marks.map(({ from, at, action }) => ({ from: Math.max(left, x(from)), at: x(at), letters: action.trigger.length })), width);
  return (
    <figure className="day-marks">
      <figcaption>
        Alerts and policies <span className="quiet">filled: captured; hollow: suppressed, or a dry run</span>
      </figcaption>
      <svg width={width} height={HEIGHT} role="group" aria-label="Alerts and policies of the last day">
        <line x1={left} x2={width} y1={MIDDLE} y2={MIDDLE} className="day-marks-axis" />
        {marks.map((mark, index) => (
          <MarkLink key={mark.key} action={mark.action} onLook={() => setLooked(mark)}>
            <title>{sayMark(mark)}</title>
            {mark.from < mark.at && <line x1={Math.max(left, x(mark.from))} x2={x(mark.at)} y1={MIDDLE} y2={MIDDLE} />}
            <circle cx={x(mark.at)} cy={MIDDLE} r={SIZE} />
            {named[index] && (
              <text x={x(mark.at) + SIZE + 4} y={MIDDLE}>
                {visibleText(mark.action.trigger)}
              </text>
            )}
          </MarkLink>
        ))}
      </svg>
      {shown && <p className="quiet">{sayMark(shown)}</p>}
    </figure>
  );
}

/** To the report where there is one, to the capture while there is none, else to the policy. */
function MarkLink({ action, onLook, children }: { action: PolicyAction; onLook: () => void; children: ReactNode }) {
  const { namespace, uid, headline, policy } = action;
  const props = { "aria-label": nameOf(action), className: action.action === "captured" ? "day-mark captured" : "day-mark", onFocus: onLook, onMouseEnter: onLook, children };
  if (uid && headline) return <Link to="/reports/$namespace/$uid" params={{ namespace, uid }} {...props} />;
  if (uid) return <Link to="/requests/$namespace/$uid" params={{ namespace, uid }} {...props} />;
  return <Link to="/policies/$namespace/$name" params={{ namespace, name: policy }} {...props} />;
}

function sayMark({ action, at }: DayMark): string {
  return `${formatMillis(at)} · ${nameOf(action)} · ${visibleText(joinSentences(action.message, action.headline))}`;
}
