// A report: the verdict first, then what to do about it, then the evidence in pictures and tables.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import type { ReportPage as Report } from "@/api/models";
import { reportQuery } from "@/api/queries";
import { Loaded } from "@/parts/States";
import { CaptureCostSection } from "./CaptureCost";
import { CommunicationSection } from "./tables/Communication";
import { Downloads } from "./Downloads";
import { Findings } from "./Findings";
import { IterationsSection } from "./ranks/Iterations";
import { KernelsSection } from "./tables/Kernels";
import { LaunchesSection } from "./tables/Launches";
import { Recorded } from "./Recorded";
import { RanksSection } from "./ranks/Ranks";
import { ReportHead } from "./ReportHead";
import { SamplesSection } from "./ranks/Samples";
import type { ReportSearch, ReportView } from "./search";
import { SpreadSection } from "./ranks/Spread";
import { StagesSection } from "./ranks/Stages";
import { StragglersSection } from "./ranks/Stragglers";
import { TotalsSection } from "./ranks/Totals";
import { Verdict } from "./Verdict";

const SECTIONS = [
  ["findings", "Findings"],
  ["time", "Time"],
  ["ranks", "Ranks"],
  ["stragglers", "Stragglers"],
  ["iterations", "Iterations"],
  ["spread", "Spread"],
  ["stages", "Stages"],
  ["kernels", "Kernels"],
  ["communication", "Communication"],
  ["launches", "Launches"],
  ["samples", "Samples"],
  ["cost", "Capture cost"],
  ["recorded", "Recorded"],
  ["downloads", "Downloads"],
] as const;

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
        void navigate({ search: (before) => ({ ...before, ...next }), hash: true, replace: "sigma" in next || "kernels" in next, resetScroll: false, hashScrollIntoView: false }),
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

// Ranks without a GPU have no device work: what only such work has is left out for them, instead of standing there empty.
const OF_DEVICES: readonly string[] = ["kernels", "launches"];

function Body({ report, view }: { report: Report; view: ReportView }) {
  const onDevices = report.totals.some(({ kind }) => kind === "gpu");
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
          {SECTIONS.filter(([id]) => onDevices || !OF_DEVICES.includes(id)).map(([id, name]) => (
            <a key={id} href={`#${id}`}>
              {name}
            </a>
          ))}
        </nav>
        <div className="sections">
          <Verdict report={report} view={view} />
          <Findings report={report} view={view} />
          <TotalsSection totals={report.totals} />
          <RanksSection view={view} late={report.stragglers?.named.map(({ rank }) => rank) ?? []} />
          <StragglersSection view={view} />
          <IterationsSection view={view} cause={report.stragglers?.named[0]?.cause ?? report.stragglers?.cause ?? undefined} />
          <SpreadSection view={view} />
          <StagesSection view={view} />
          {onDevices && <KernelsSection view={view} />}
          <CommunicationSection view={view} />
          {onDevices && <LaunchesSection view={view} />}
          <SamplesSection view={view} />
          <CaptureCostSection cost={report.capture_cost} />
          <Recorded report={report} />
          <Downloads report={report} />
        </div>
      </div>
    </>
  );
}
