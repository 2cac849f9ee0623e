// The fleet: each workload that was captured, with the headline figures of its last report.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { FleetPage as Page, Workload } from "@/api/models";
import { fleetQuery } from "@/api/queries";
import { FilteredList } from "@/parts/FilteredList";
import { Name } from "@/parts/Name";
import { SearchBox } from "@/parts/SearchBox";
import { Empty } from "@/parts/States";
import { plural } from "@/units/quantities";
import { sentenceCase } from "@/units/text";
import { fleetColumns } from "./columns";
import { JobsOfTheDay, NeverCaptured } from "./JobsOfTheDay";
import type { FleetSearch } from "./search";

const DEFAULT_SORT = "-last";

export function FleetPage() {
  const search = useSearch({ from: "/fleet" });
  const navigate = useNavigate({ from: "/fleet" });
  const { compare, ...filters } = search;
  const query = useInfiniteQuery(fleetQuery({ ...filters, sort: search.sort ?? DEFAULT_SORT }));
  const change = useCallback(
    (next: Partial<FleetSearch>) => void navigate({ search: (before) => ({ ...before, ...next }), replace: "text" in next }),
    [navigate],
  );
  const onText = useCallback((text: string) => change({ text: text || undefined }), [change]);
  const first = query.data?.pages[0];
  const filtered = Object.entries(filters).some(([name, value]) => name !== "sort" && value !== undefined);

  return (
    <div className="page">
      <title>Fleet · fleetprof</title>
      <header className="page-head">
        <h1>Fleet</h1>
        {first && <p className="quiet">{plural(first.total, "workload")}</p>}
        <NeverCaptured />
        <div className="tools">
          <SearchBox label="Search workloads" value={search.text ?? ""} onChange={onText} />
        </div>
      </header>
      {compare && <CompareBar name={nameOf(compare, query.data?.pages)} onEnd={() => change({ compare: undefined })} />}
      <FilteredList<Workload, Page>
        query={query}
        row="workload"
        label="Workloads"
        facets={({ facets }) => [
          { id: "cluster", name: "Cluster", values: facets.cluster, chosen: search.cluster },
          { id: "namespace", name: "Namespace", values: facets.namespace, chosen: search.namespace },
          { id: "kind", name: "Kind", values: facets.kind, chosen: search.kind },
          { id: "gpu", name: "GPU", values: facets.gpu, chosen: search.gpu },
          { id: "finding", name: "First finding", values: facets.finding, chosen: search.finding, say: sentenceCase },
          { id: "label", name: "Label", values: facets.label, chosen: search.label },
        ]}
        columns={(rows) => fleetColumns(compare, rows)}
        rowKey={({ namespace, kind, name }) => `${namespace}/${kind}/${name}`}
        sort={search.sort ?? DEFAULT_SORT}
        minWidth={1040}
        filtered={filtered}
        onChange={change}
        onClear={() => void navigate({ search: {} })}
      >
        <FleetIsEmpty />
      </FilteredList>
      <JobsOfTheDay />
    </div>
  );
}

/** The workload whose last report that is, else the report itself. */
function nameOf(report: string, pages: readonly Page[] | undefined): string {
  const row = pages?.flatMap(({ items }) => items).find(({ last }) => `${last.namespace}/${last.uid}` === report);
  return row ? row.name : `the report ${report}`;
}

function CompareBar({ name, onEnd }: { name: string; onEnd: () => void }) {
  return (
    <p className="compare-bar" role="status">
      Comparing <Name text={name} most={70} /> with another workload: choose “with this” in its row. Other captures of one workload are on its own page.{" "}
      <button type="button" className="small" onClick={onEnd}>
        Stop
      </button>
    </p>
  );
}

function FleetIsEmpty() {
  return (
    <Empty title="Nothing was captured yet">
      <p>A workload appears here with its first capture.</p>
      <p>
        On this machine: <code>fleetprof run python train.py</code>, then <code>fleetprof capture</code>. On Kubernetes:{" "}
        <code>kubectl fleetprof capture</code>.
      </p>
      <p>
        <Link to="/requests">Captures in progress</Link>
      </p>
    </Empty>
  );
}
