// The answer in one sentence that a manager understands, with its evidence and the next step.
import { Link } from "@tanstack/react-router";
import { Name } from "@/parts/Name";
import { formatShare, plural } from "@/units/quantities";
import { capital } from "@/units/text";
import { Place } from "./Place";
import type { SectionProps } from "./sections";

export function Verdict({ report, view }: SectionProps) {
  const { answer, stragglers } = report;
  const named = stragglers?.named[0];
  const rank = named?.rank;
  const tone = rank === undefined ? "calm" : "named";
  return (
    <section className={`verdict verdict-${tone}`} aria-labelledby="verdict-title">
      <h2 id="verdict-title" className="verdict-sentence">
        <Name text={answer.sentence} most={1000} />
      </h2>
      {answer.evidence.length > 0 && (
        <ul>
          {answer.evidence.map((line) => (
            <li key={line}>
              <Name text={line} most={600} />
            </li>
          ))}
        </ul>
      )}
      <div className="row">
        {named?.place && <Place place={named.place} />}
        {stragglers && stragglers.gain > 0 && (
          <span>
            Potential saving: <strong>{formatShare(stragglers.gain)}</strong> of the iteration
          </span>
        )}
        {rank !== undefined && (
          <a href="#ranks" onClick={() => view.change({ rank })}>
            Show rank {rank}
          </a>
        )}
        {report.has_timeline && (
          <Link to="/reports/$namespace/$uid/timeline" params={{ namespace: view.namespace, uid: view.uid }}>
            See it in the timeline
          </Link>
        )}
        {stragglers && stragglers.named_count > 1 && <a href="#stragglers">{plural(stragglers.named_count, "late rank")}</a>}
      </div>
      {answer.next_step && <p className="next-step">{capital(answer.next_step)}</p>}
    </section>
  );
}
