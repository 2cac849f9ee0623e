// One workload over time: its captures as lines of their headline figures, and as a table.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Capture } from "@/api/models";
import { workloadQuery } from "@/api/queries";
import { useWidth } from "@/charts/canvas";
import { Section } from "@/parts/Section";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Empty, Loaded } from "@/parts/States";
import { CaptureLink } from "@/requests/CaptureLink";
import { StateMark } from "@/requests/StateMark";
import { formatDate } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { formatPower, plural } from "@/units/quantities";
import { LastDay } from "./LastDay";
import { TrendChart } from "./TrendChart";

export function WorkloadPage() {
  const { namespace, kind, name } = useParams({ from: "/fleet/$namespace/$kind/$name" });
  const query = useInfiniteQuery(workloadQuery(namespace, kind === "-" ? "" : kind, name));
  const first = query.data?.pages[0];
  const captures = query.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <div className="page">
      <title>{`${name} · fleetprof`}</title>
      <nav className="crumbs" aria-label="Place">
        <Link to="/fleet">Fleet</Link> / <Link to="/fleet" search={{ namespace }}><Name text={namespace} most={40} /></Link>
      </nav>
      <header className="page-head">
        <h1>
          <Name text={name} most={80} />
        </h1>
        <p className="quiet">
          <Name text={kind === "-" ? "kind not known" : kind} most={40} />
          {captures.length > 0 && ` · ${plural(captures.length, "capture")}${query.hasNextPage ? " and more" : ""}`}
        </p>
        <div className="tools">
          <CaptureLink namespace={namespace} kind={kind} name={name} last={captures[0]?.uid} />
        </div>
      </header>
      <Loaded query={{ ...query, data: first }} what="the captures" rows={8}>
        {() =>
          captures.length === 0 ? (
            <>
              <Empty title="No captures of this workload" />
              <LastDay namespace={namespace} kind={kind === "-" ? "" : kind} name={name} />
            </>
          ) : (
            <Body captures={captures} day={<LastDay namespace={namespace} kind={kind === "-" ? "" : kind} name={name} />} onEnd={() => query.hasNextPage && !query.isFetching && void query.fetchNextPage()} />
          )
        }
      </Loaded>
    </div>
  );
}

function Body({ captures, day, onEnd }: { captures: readonly Capture[]; day: ReactNode; onEnd: () => void }) {
  const { compare: base } = useSearch({ from: "/fleet/$namespace/$kind/$name" });
  const [place, width] = useWidth<HTMLDivElement>();
  const navigate = useNavigate();
  const choose = useNavigate({ from: "/fleet/$namespace/$kind/$name" });
  const setBase = (compare: string | undefined) => void choose({ search: { compare } });
  const open = ({ namespace, uid }: Capture) => void navigate({ to: "/reports/$namespace/$uid", params: { namespace, uid } });
  const reported = captures.filter(({ figures }) => figures !== null).toReversed();
  return (
    <>
      <Section id="trend" title="Over time" note={reported.length > 1 ? "each point is a report; click it" : "one report is no trend yet"}>
        <div ref={place} className="trends">
          {width > 0 && (
            <>
              <TrendChart title="Iteration time" captures={reported} width={width} value={({ iteration_ns }) => iteration_ns} say={formatDuration} color="--compute" onOpen={open} />
              <TrendChart title="Busy" captures={reported} width={width} value={({ busy_permille }) => busy_permille} say={(value) => `${(value / 10).toFixed(1)} %`} color="--memory" onOpen={open} />
              <TrendChart title="Exposed communication" captures={reported} width={width} value={({ exposed_communication_permille }) => exposed_communication_permille} say={(value) => `${(value / 10).toFixed(1)} %`} color="--communication" onOpen={open} />
            </>
          )}
        </div>
      </Section>
      {day}
      <Section id="captures" title="Captures" note={base ? "choose the other report to compare with" : undefined}>
        {base && (
          <p className="compare-bar" role="status">
            {reported.length > 1 ? "Choose “with this” in the row of another capture, or compare with the last report of " : "This workload has no other report yet: capture it again, or compare with the last report of "}
            <Link to="/fleet" search={{ compare: base }}>
              another workload
            </Link>
            .
          </p>
        )}
        <DataTable<Capture> label="Captures" columns={columns(base, setBase)} rows={captures} rowKey={({ uid }) => uid} rowHeight={44} minWidth={960} onEnd={onEnd} />
      </Section>
    </>
  );
}

function columns(base: string | undefined, setBase: (base: string | undefined) => void): Column<Capture>[] {
  const at = ({ namespace, uid }: Capture) => `${namespace}/${uid}`;
  const share = (permille: number | null | undefined) => (permille == null ? null : permille / 1000);
  return [
    {
      id: "name",
      header: "Capture",
      width: "230px",
      cell: (row) => (
        <div className="two-lines">
          <Link to={row.figures ? "/reports/$namespace/$uid" : "/requests/$namespace/$uid"} params={{ namespace: row.namespace, uid: row.uid }}>
            <Name text={row.name || row.uid} most={40} />
          </Link>
          <span className="quiet">{formatDate(row.submitted_unix_ns)}</span>
        </div>
      ),
    },
    {
      id: "verdict",
      header: "Verdict",
      cell: (row) =>
        row.figures ? (
          <Link to="/reports/$namespace/$uid" params={{ namespace: row.namespace, uid: row.uid }} className="verdict-cell" title={row.figures.sentence}>
            {row.figures.sentence}
          </Link>
        ) : (
          <span className="quiet">{row.problem ? <Name text={row.problem} most={120} /> : "no report"}</span>
        ),
    },
    {
      id: "state",
      header: "State",
      width: "150px",
      cell: (row) => (
        <Link to="/requests/$namespace/$uid" params={{ namespace: row.namespace, uid: row.uid }} title="The request, rank by rank">
          <StateMark state={row.state} finished={row.finished} />
        </Link>
      ),
    },
    { id: "ranks", header: "Ranks", width: "64px", numeric: true, cell: (row) => row.figures?.rank_count ?? "–" },
    { id: "iteration", header: "Iteration", width: "92px", numeric: true, cell: (row) => formatDuration(row.figures?.iteration_ns) },
    { id: "busy", header: "Busy", width: "112px", numeric: true, cell: (row) => <ShareBar share={share(row.figures?.busy_permille)} color="--compute" /> },
    { id: "exposed", header: "Exposed comm.", width: "132px", numeric: true, cell: (row) => <ShareBar share={share(row.figures?.exposed_communication_permille)} color="--communication" /> },
    { id: "power", header: "Power", width: "80px", numeric: true, cell: (row) => formatPower(row.figures?.power_mw) },
    {
      id: "compare",
      header: "",
      width: "92px",
      cell: (row) =>
        row.figures &&
        (base === undefined ? (
          <button type="button" className="small" onClick={() => setBase(at(row))}>
            Compare
          </button>
        ) : base === at(row) ? (
          <button type="button" className="small" onClick={() => setBase(undefined)}>
            Stop
          </button>
        ) : (
          <Link to="/diff" search={{ base, new: at(row) }} className="button small">
            with this
          </Link>
        )),
    },
  ];
}
