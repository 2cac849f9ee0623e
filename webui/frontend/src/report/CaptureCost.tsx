import type { CaptureCost } from "@/api/models";
import { Section } from "@/parts/Section";
import { formatDuration } from "@/units/durations";
import { formatChange, formatCount, formatShare, plural } from "@/units/quantities";
import type { SectionProps } from "./sections";

/** What the capture itself cost the job. */
export function CaptureCostSection({ report: { capture_cost: cost } }: SectionProps) {
  return (
    <Section id="cost" title="What the capture cost" note="from the agent's step times">
      {cost ? <Body cost={cost} /> : <p className="quiet">Not known: the ranks had no agent, or too few iterations around the capture.</p>}
    </Section>
  );
}

function Body({ cost }: { cost: CaptureCost }) {
  // The interval of a ratio is given around 1, that of the residue around 0.
  const between = (interval: CaptureCost["residue_interval"], none: number) =>
    interval && (
      <span className="quiet">
        {" "}
        ({formatShare(cost.confidence_permille / 1000)} interval {formatChange(interval.low - none)} to {formatChange(interval.high - none)})
      </span>
    );
  return (
    <>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">Phase</th>
            <th scope="col" className="numeric">Median iteration</th>
            <th scope="col" className="numeric">Interval</th>
            <th scope="col" className="numeric">Iterations</th>
          </tr>
        </thead>
        <tbody>
          {(["before", "during", "after"] as const).map((name) => {
            const phase = cost[name];
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td className="numeric">{formatDuration(phase.median_ns)}</td>
                <td className="numeric">
                  {phase.median_low_ns == null ? "–" : `${formatDuration(phase.median_low_ns)} – ${formatDuration(phase.median_high_ns)}`}
                </td>
                <td className="numeric">{formatCount(phase.iterations)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <dl className="facts">
        {cost.during_ratio != null && (
          <div>
            <dt>While it recorded</dt>
            <dd>
              {formatChange(cost.during_ratio - 1)} iteration time{between(cost.during_ratio_interval, 1)}
            </dd>
          </div>
        )}
        {cost.residue_ratio != null && (
          <div>
            <dt>Afterwards</dt>
            <dd>
              {cost.residue_is_zero ? "no difference shown" : formatChange(cost.residue_ratio)}
              {between(cost.residue_interval, 0)}
            </dd>
          </div>
        )}
        {cost.stall_ns != null && (
          <div>
            <dt>Longest stall while the trace was written</dt>
            <dd>{formatDuration(cost.stall_ns)}</dd>
          </div>
        )}
        <div>
          <dt>Ranks measured</dt>
          <dd>{plural(cost.ranks, "rank")}</dd>
        </div>
      </dl>
      {cost.method && (
        <details>
          <summary>How this was measured</summary>
          <p className="quiet">{cost.method}</p>
        </details>
      )}
    </>
  );
}
