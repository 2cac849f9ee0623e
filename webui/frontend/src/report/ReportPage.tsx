// A report: the verdict first, then what to do about it, then the evidence in pictures and tables.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { reportQuery } from "@/api/queries";
import { Loaded } from "@/parts/States";
import { KeyFigures } from "./KeyFigures";
import { ReportHead } from "./ReportHead";
import type { ReportSearch, ReportView } from "./search";
import { SECTIONS, type SectionProps } from "./sections";
import { Verdict } from "./Verdict";

export function ReportPage() {
  const { namespace, uid } = useParams({ from: "/reports/$namespace/$uid" });
  const search = useSearch({ from: "/reports/$namespace/$uid" });
  const navigate = useNavigate({ from: "/reports/$namespace/$uid" });
  const query = useQuery(reportQuery(namespace, uid));
  const view = useMemo<ReportView>(
    () => ({
      namespace,
      uid,
      search,
      // Back undoes a choice. A slider makes dozens of addresses, and keeps one.
      change: (next: Partial<ReportSearch>) =>
        void navigate({ search: (before) => ({ ...before, ...next }), hash: true, replace: "sigma" in next || "kernels" in next || "whatif" in next, resetScroll: false, hashScrollIntoView: false }),
    }),
    [namespace, uid, search, navigate],
  );
  return (
    <div className="page">
      <Loaded query={query} what="the report" rows={10}>
        {(report) => <Body report={report} view={view} />}
      </Loaded>
    </div>
  );
}

function Body({ report, view }: SectionProps) {
  const sections = SECTIONS.filter(({ isIn }) => isIn?.(report) ?? true);
  // The browser went to the anchor before there was anything to go to.
  useEffect(() => {
    const id = location.hash.slice(1);
    if (id) document.querySelector(`#${CSS.escape(id)}`)?.scrollIntoView();
  }, []);
  return (
    <>
      <title>{`${report.title || report.uid} · fleetprof`}</title>
      <ReportHead report={report} />
      <div className="with-contents">
        <nav className="contents" aria-label="Sections of the report">
          {sections.map(({ id, name }) => (
            <a key={id} href={`#${id}`}>
              {name}
            </a>
          ))}
        </nav>
        <div className="sections">
          <Verdict report={report} view={view} />
          <KeyFigures report={report} />
          {sections.map(({ id, Body: One }) => (
            <One key={id} report={report} view={view} />
          ))}
        </div>
      </div>
    </>
  );
}
