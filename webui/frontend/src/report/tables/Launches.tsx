// How each rank's host launched its work, and which operators launch most.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { LaunchSlice, OperatorLaunches, RankLaunches } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { sortRows } from "@/parts/sorting";
import { formatDuration } from "@/units/durations";
import { formatCount } from "@/units/quantities";
import { rankName } from "../ranks/rankRows";
import { type ReportView, SOUGHT } from "../search";
import type { SectionProps } from "../sections";

export function LaunchesSection({ report, view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "launches"));
  return (
    <Section id="launches" title="Launches" note="how the host launched device work" lazyHeight={300}>
      <Loaded query={query} what="launches" cut="rank">
        {(page) =>
          page.ranks.length === 0 ? (
            <Empty title="No launches in these traces">
              <p>CPU-only ranks launch nothing.</p>
            </Empty>
          ) : (
            <Body page={page} view={view} hasTimeline={report.has_timeline} />
          )
        }
      </Loaded>
    </Section>
  );
}

type Launches = RankLaunches["launches"];
type TimeField = "call_p50_ns" | "call_p99_ns" | "delay_p50_ns" | "delay_p99_ns" | "full_queue_ns";
type SavingField = "graph_saving_ns" | "maximum_shift_ns";

function Body({ page, view, hasTimeline }: { page: LaunchSlice; view: ReportView; hasTimeline: boolean }) {
  const [sort, setSort] = useState("rank");
  const time = (id: TimeField, header: string, explanation: string): Column<RankLaunches> => ({
    id,
    header,
    width: "112px",
    numeric: true,
    sortable: true,
    explanation,
    cell: (row) => formatDuration(row.launches[id]),
  });
  const saving = (id: SavingField, header: string, explanation: string): Column<RankLaunches> => ({
    id,
    header,
    width: "136px",
    numeric: true,
    sortable: true,
    explanation,
    cell: ({ launches, span_ns: span }) => (launches[id] == null ? "–" : <ShareBar share={span > 0 ? launches[id] / span : null} color="--host" />),
  });
  const shown: Column<RankLaunches>[] = [
    { id: "rank", header: "Rank", width: "56px", numeric: true, sortable: true, cell: (row) => rankName(row.rank) },
    { id: "launches", header: "Launches", width: "96px", numeric: true, sortable: true, cell: (row) => formatCount(row.launches.launches) },
    time("call_p50_ns", "Call p50", "duration of the launch calls"),
    time("call_p99_ns", "Call p99", "duration of the launch calls"),
    time("delay_p50_ns", "Delay p50", "end of the call to start of the work"),
    time("delay_p99_ns", "Delay p99", "end of the call to start of the work"),
    { id: "short", header: "Shorter than call", width: "136px", numeric: true, sortable: true, explanation: "rows that ran shorter than their launch call took", cell: (row) => formatCount(row.launches.short) },
    { id: "slow_calls", header: "Calls > 1 ms", width: "104px", numeric: true, sortable: true, cell: (row) => formatCount(row.launches.slow_calls) },
    { id: "longest_queue", header: "Longest queue", width: "116px", numeric: true, sortable: true, cell: (row) => formatCount(row.launches.longest_queue) },
    saving("graph_saving_ns", "Graph saving", "idle time that launching as one graph could save at most; share of the rank's time"),
    saving("maximum_shift_ns", "Maximum shift", "how much earlier the last launch could come, limited by other calls and the work before; share of the rank's time"),
    time("full_queue_ns", "Full queue", "sum over streams of the time with 1,024 waiting rows or more"),
  ];
  const value = (row: RankLaunches, id: string) => (id === "rank" ? row.rank : row.launches[id as keyof Launches]);
  return (
    <>
      {page.sampled.length > 0 && (
        <p className="quiet">Rank {page.sampled.slice(0, 8).join(", ")} recorded a sample of the operators only: launches and idle causes mean little there.</p>
      )}
      <DataTable<RankLaunches>
        label="Launches by rank"
        columns={shown}
        rows={sortRows(page.ranks, sort, value)}
        rowKey={(row) => row.source}
        sort={sort}
        onSort={setSort}
        mostHeight={360}
        minWidth={1180}
        isSelected={(row) => row.rank !== null && row.rank === view.search.rank}
        onSelect={(row) => view.change({ rank: row.rank ?? undefined })}
      />
      {page.operators.length > 0 && <Operators rows={page.operators} view={view} hasTimeline={hasTimeline} />}
    </>
  );
}

function Operators({ rows, view, hasTimeline }: { rows: readonly OperatorLaunches[]; view: ReportView; hasTimeline: boolean }) {
  const [sort, setSort] = useState("-own_device_ns");
  const count = (id: "calls" | "own_launches" | "launches", header: string): Column<OperatorLaunches> => ({ id, header, width: "126px", numeric: true, sortable: true, cell: (row) => formatCount(row[id]) });
  const shown: Column<OperatorLaunches>[] = [
    { id: "name", header: "Operator", sortable: true, cell: ({ name }) => (name === "(none)" ? "outside any operator" : hasTimeline ? <Place name={name} view={view} /> : <Name text={name} most={80} code />) },
    count("calls", "Calls"),
    count("own_launches", "Own launches"),
    { id: "own_device_ns", header: "Own device time", width: "156px", numeric: true, sortable: true, cell: (row) => formatDuration(row.own_device_ns) },
    count("launches", "All launches"),
    { id: "device_ns", header: "Device time", width: "112px", numeric: true, sortable: true, explanation: "with that of operators inside it", cell: (row) => formatDuration(row.device_ns) },
  ];
  return (
    <>
      <h3>Operators that launch</h3>
      <DataTable<OperatorLaunches> label="Operators that launch" columns={shown} rows={sortRows(rows, sort, (row, id) => row[id as keyof OperatorLaunches])} rowKey={(row) => row.name} sort={sort} onSort={setSort} mostHeight={360} minWidth={800} />
    </>
  );
}

/** Leads to an example in the timeline, whose drawer says what it launches. */
function Place({ name, view: { namespace, uid } }: { name: string; view: ReportView }) {
  return (
    <Link to="/reports/$namespace/$uid/timeline" params={{ namespace, uid }} search={{ find: name.slice(0, SOUGHT) }} title="An example in the timeline, with what it launches">
      <Name text={name} most={80} code />
    </Link>
  );
}
