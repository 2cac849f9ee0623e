// The timeline of a report by itself; what it shows is in its address.
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { path } from "@/api/client";
import { Name } from "@/parts/Name";
import { readState, Timeline, type TimelineState } from "@/timeline";

export default function TimelinePage() {
  const { namespace, uid } = useParams({ from: "/reports/$namespace/$uid/timeline" });
  const { view } = useSearch({ from: "/reports/$namespace/$uid/timeline" });
  const navigate = useNavigate({ from: "/reports/$namespace/$uid/timeline" });
  const state = useMemo(() => readState(parse(view)), [view]);
  useEffect(() => {
    document.title = `Timeline of ${uid} – fleetprof`;
  }, [uid]);
  const change = (next: TimelineState) =>
    void navigate({ search: { view: JSON.stringify(next) }, replace: true, resetScroll: false });
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
      <Timeline source={`${path("reports", namespace, uid, "timeline")}/`} state={state} onStateChange={change} />
    </div>
  );
}

function parse(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
