// All requests, those that go on first in sight: how far their ranks are, and how they ended.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Request, RequestPage as Page } from "@/api/models";
import { requestsQuery, whoamiQuery } from "@/api/queries";
import type { Column } from "@/parts/DataTable";
import { FilteredList } from "@/parts/FilteredList";
import { Name } from "@/parts/Name";
import { SearchBox } from "@/parts/SearchBox";
import { Empty } from "@/parts/States";
import { formatAgo, formatDate, unixMillis } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { formatCount, plural } from "@/units/quantities";
import { NewCapture } from "./NewCapture";
import type { RequestsSearch } from "./search";
import { StateMark } from "./StateMark";

const DEFAULT_SORT = "-submitted";

export function RequestsPage() {
  const search = useSearch({ from: "/requests" });
  const navigate = useNavigate({ from: "/requests" });
  const { capture, repeat, job, ...filters } = search;
  const query = useInfiniteQuery(requestsQuery({ ...filters, sort: search.sort ?? DEFAULT_SORT }));
  const mayCapture = useQuery(whoamiQuery).data?.may_capture ?? false;
  const change = useCallback(
    (next: Partial<RequestsSearch>) => void navigate({ search: (before) => ({ ...before, ...next }), replace: "text" in next }),
    [navigate],
  );
  const onText = useCallback((text: string) => change({ text: text || undefined }), [change]);
  const first = query.data?.pages[0];
  const filtered = Object.entries(filters).some(([name, value]) => name !== "sort" && value !== undefined);
  return (
    <div className="page">
      <title>Requests · fleetprof</title>
      <header className="page-head">
        <h1>Requests</h1>
        {first && <p className="quiet">{plural(first.total, "request")}</p>}
        <div className="tools">
          <SearchBox label="Search requests" value={search.text ?? ""} onChange={onText} />
          <button type="button" onClick={() => change({ capture: capture ? undefined : "new", repeat: undefined, job: undefined })} aria-expanded={capture === "new"}>
            New capture
          </button>
        </div>
      </header>
      {capture === "new" && <NewCapture repeat={repeat} job={job} mayCapture={mayCapture} onClose={() => change({ capture: undefined, repeat: undefined, job: undefined })} />}
      <FilteredList<Request, Page>
        query={query}
        row="request"
        label="Requests"
        facets={({ facets, total }) => [
          { id: "host", name: "Host", values: search.host ? [{ value: search.host, count: total }] : [], chosen: search.host },
          { id: "state", name: "State", values: facets.state, chosen: search.state },
          { id: "cluster", name: "Cluster", values: facets.cluster, chosen: search.cluster },
          { id: "namespace", name: "Namespace", values: facets.namespace, chosen: search.namespace },
        ]}
        columns={columns}
        rowKey={({ namespace, uid }) => `${namespace}/${uid}`}
        sort={search.sort ?? DEFAULT_SORT}
        minWidth={900}
        filtered={filtered}
        onChange={change}
        onClear={() => void navigate({ search: {} })}
      >
        <Empty title="Nobody has asked for a capture yet">
          <p>
            Ask for one with <code>fleetprof capture</code>, or with “New capture” above.
          </p>
        </Empty>
      </FilteredList>
    </div>
  );
}

/** Who asked is a column where anybody is known. */
function columns(rows: readonly Request[]): Column<Request>[] {
  const now = Date.now();
  const known = rows.some(({ requester }) => requester);
  const all: Column<Request>[] = [
    {
      id: "name",
      header: "Request",
      width: "260px",
      sortable: true,
      cell: (row) => (
        <div className="two-lines">
          <Link to="/requests/$namespace/$uid" params={{ namespace: row.namespace, uid: row.uid }}>
            <Name text={row.name || row.uid} most={48} />
          </Link>
          <span className="quiet">
            <Name text={row.namespace} most={24} /> · <Name text={`${row.kind} ${row.workload}`} most={40} />
          </span>
        </div>
      ),
    },
    { id: "state", header: "State", width: "168px", sortable: true, cell: (row) => <StateMark state={row.state} finished={row.finished} /> },
    { id: "ranks", header: "Ranks", width: "220px", cell: (row) => <RankProgress row={row} /> },
    { id: "message", header: "What happened", cell: (row) => <span className="verdict-cell quiet"><Name text={row.message} most={220} /></span> },
    {
      id: "took",
      header: "Took",
      width: "92px",
      numeric: true,
      cell: ({ submitted_unix_ns: from, completed_unix_ns: to }) => {
        const [began, ended] = [unixMillis(from), unixMillis(to)];
        return began !== null && ended !== null ? formatDuration((ended - began) * 1e6) : "–";
      },
    },
    { id: "requester", header: "Asked by", width: "120px", cell: (row) => <Name text={row.requester || "–"} most={20} /> },
    {
      id: "submitted",
      header: "Asked",
      width: "112px",
      numeric: true,
      sortable: true,
      cell: (row) => <time title={formatDate(row.submitted_unix_ns)}>{formatAgo(row.submitted_unix_ns, now)}</time>,
    },
    {
      id: "report",
      header: "",
      width: "76px",
      cell: (row) =>
        row.has_report && (
          <Link to="/reports/$namespace/$uid" params={{ namespace: row.namespace, uid: row.uid }} className="button small">
            Report
          </Link>
        ),
    },
  ];
  return all.filter(({ id }) => id !== "requester" || known);
}

function RankProgress({ row }: { row: Request }) {
  const { targeted, uploaded, failed } = row.ranks;
  const width = 72;
  const share = (count: number) => (targeted > 0 ? (count / targeted) * width : 0);
  return (
    <span className="share">
      <svg width={width} height="8" aria-hidden="true">
        <rect width={width} height="8" className="share-ground" />
        <rect width={share(uploaded)} height="8" fill="var(--compute)" />
        <rect x={share(uploaded)} width={share(failed)} height="8" fill="var(--communication)" />
      </svg>
      <span>
        {formatCount(uploaded)} of {formatCount(targeted)}
        {failed > 0 && <span className="bad"> · {formatCount(failed)} failed</span>}
      </span>
    </span>
  );
}
