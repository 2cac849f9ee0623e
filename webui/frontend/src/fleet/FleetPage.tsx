// The fleet: each workload that was captured, with the headline figures of its last report.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { FleetPage as Page, Workload } from "@/api/models";
import { fleetQuery } from "@/api/queries";
import { DataTable } from "@/parts/DataTable";
import { Facets } from "@/parts/Facets";
import { Name } from "@/parts/Name";
import { SearchBox } from "@/parts/SearchBox";
import { Empty, Loaded } from "@/parts/States";
import { formatCount, plural } from "@/units/quantities";
import { sentenceCase } from "@/units/text";
import { fleetColumns } from "./columns";
import type { FleetSearch } from "./search";

const DEFAULT_SORT = "-last";

export function FleetPage() {
  const search = useSearch({ from: "/fleet" });
  const navigate = useNavigate({ from: "/fleet" });
  const { compare, ...filters } = search;
  const query = useInfiniteQuery(fleetQuery({ ...filters, sort: search.sort ?? DEFAULT_SORT }));
  const change = useCallback(
    (next: Partial<FleetSearch>) => void navigate({ search: (before) => ({ ...before, ...next }), replace: true }),
    [navigate],
  );
  const onText = useCallback((text: string) => change({ text: text || undefined }), [change]);
  const pages = query.data?.pages;
  const first = pages?.[0];
  const rows = pages?.flatMap(({ items }) => items) ?? [];
  const filtered = Object.entries(filters).some(([name, value]) => name !== "sort" && value !== undefined);

  return (
    <div className="page">
      <title>Fleet · fleetprof</title>
      <header className="page-head">
        <h1>Fleet</h1>
        {first && <p className="quiet">{plural(first.total, "workload")}</p>}
        <div className="tools">
          <SearchBox label="Search workloads" value={search.text ?? ""} onChange={onText} />
        </div>
      </header>
      {compare && <CompareBar compare={compare} onEnd={() => change({ compare: undefined })} />}
      <Loaded query={{ ...query, data: first }} what="the fleet" rows={8}>
        {(page: Page) =>
          page.total === 0 && !filtered ? (
            <FleetIsEmpty />
          ) : (
            <div className="with-facets">
              <Facets
                facets={[
                  { id: "namespace", name: "Namespace", values: page.facets.namespace, chosen: search.namespace },
                  { id: "kind", name: "Kind", values: page.facets.kind, chosen: search.kind },
                  { id: "gpu", name: "GPU", values: page.facets.gpu, chosen: search.gpu },
                  { id: "finding", name: "First finding", values: page.facets.finding, chosen: search.finding, say: sentenceCase },
                ]}
                onChoose={(id, value) => change({ [id]: value })}
              />
              {rows.length > 0 ? (
                <DataTable<Workload>
                  label="Workloads"
                  columns={fleetColumns(compare, rows)}
                  rows={rows}
                  rowKey={(row) => `${row.namespace}/${row.kind}/${row.name}`}
                  sort={search.sort ?? DEFAULT_SORT}
                  onSort={(sort) => change({ sort })}
                  rowHeight={46}
                  mostHeight={window.innerHeight - 150}
                  minWidth={1100}
                  onEnd={() => query.hasNextPage && !query.isFetching && void query.fetchNextPage()}
                />
              ) : (
                <Empty title="No workload has all of these">
                  <button type="button" onClick={() => void navigate({ search: {} })}>
                    Take all filters away
                  </button>
                </Empty>
              )}
            </div>
          )
        }
      </Loaded>
      {first && rows.length < first.total && <p className="quiet">{formatCount(rows.length)} shown; scroll for more</p>}
    </div>
  );
}

function CompareBar({ compare, onEnd }: { compare: string; onEnd: () => void }) {
  return (
    <p className="compare-bar" role="status">
      Comparing <Name text={compare} most={60} code /> with another workload: choose “with this” in its row.{" "}
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
        <Link to="/requests">Captures that go on now</Link>
      </p>
    </Empty>
  );
}
