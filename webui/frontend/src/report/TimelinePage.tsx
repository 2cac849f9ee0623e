// The timeline of a report by itself; what it shows is in its address.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { path } from "@/api/client";
import type { ReportPage } from "@/api/models";
import { reportQuery } from "@/api/queries";
import { Name } from "@/parts/Name";
import { MOST_CHARACTERS, nameUnreadable, readGoal, readState, stateOf, Timeline, type SampledLine, type TimelineState, writeState } from "@/timeline";
import { Place } from "./Place";

export default function TimelinePage() {
  const { namespace, uid } = useParams({ from: "/reports/$namespace/$uid/timeline" });
  const { view, at, find, rank } = useSearch({ from: "/reports/$namespace/$uid/timeline" });
  const navigate = useNavigate({ from: "/reports/$namespace/$uid/timeline" });
  const goal = useMemo(() => (view ? null : readGoal(at, find, rank)), [view, at, find, rank]);
  const state = useMemo(() => (goal ? stateOf(goal) : readState(parse(view))), [view, goal]);
  // Of the address that was opened: the page writes those that follow.
  const [unreadable] = useState(() => (view ? nameUnreadable(parse(view), state) : ""));
  const { data: report } = useQuery(reportQuery(namespace, uid));
  const sampled = useMemo(() => (report ? sampledLines(report) : []), [report]);
  const place = report?.stragglers?.named[0]?.place;
  useEffect(() => {
    document.title = `Timeline of ${uid} – fleetprof`;
  }, [uid]);
  const change = (next: TimelineState, isStep: boolean) =>
    void navigate({ search: { view: writeState(next) }, replace: !isStep, resetScroll: false });
  return (
    <div className="page">
      <nav className="crumbs" aria-label="Place">
        <Link to="/fleet">Fleet</Link> / <Name text={namespace} most={40} /> /{" "}
        <Link to="/reports/$namespace/$uid" params={{ namespace, uid }}>
          Report
        </Link>
      </nav>
      <header className="page-head">
        <h1>Timeline</h1>
      </header>
      <p className="timeline-verdict">
        {report && (
          <>
            <span title={report.answer.sentence}>
              <Name text={report.answer.sentence} most={600} />
            </span>
            {place && <Place place={place} />}
            <Link to="/reports/$namespace/$uid" params={{ namespace, uid }} hash="verdict-title">
              Evidence
            </Link>
          </>
        )}
      </p>
      {unreadable && <p role="status">The address was read but for this: {unreadable}.</p>}
      <Timeline source={`${path("reports", namespace, uid, "timeline")}/`} state={state} goal={goal} onStateChange={change} sampled={sampled} report={path("reports", namespace, uid)} />
    </div>
  );
}

/** The lines of code that the report names: those of late ranks, and those of findings. */
function sampledLines({ answer, findings, stragglers }: ReportPage): SampledLine[] {
  const late = (stragglers?.named ?? []).map(({ rank, place }) => ({ place, ranks: [rank], sentence: answer.sentence }));
  const found = findings.map(({ place, ranks, message }) => ({ place, ranks, sentence: message }));
  return [...late, ...found].flatMap(({ place, ranks, sentence }) =>
    place
      ? [{ file: place.file, line: place.line, function: place.function, samples: place.samples, ofSamples: place.of_samples, ranks, sentence }]
      : [],
  );
}

function parse(text: string | undefined): unknown {
  try {
    return text === undefined || text.length > MOST_CHARACTERS ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
