// All policies that one may read: what each waits for, how often it fired, captured, and was suppressed.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Policy } from "@/api/models";
import { policiesQuery } from "@/api/queries";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Empty, Loaded } from "@/parts/States";
import { formatAgo, formatDate } from "@/units/dates";
import { formatCount, plural } from "@/units/quantities";

export function PoliciesPage() {
  const query = useQuery(policiesQuery);
  return (
    <div className="page">
      <title>Policies · fleetprof</title>
      <header className="page-head">
        <h1>Policies</h1>
        {query.data && <p className="quiet">{plural(query.data.total, "policy", "policies")}</p>}
      </header>
      <Loaded query={query} what="the policies" rows={6}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="There is no policy that you may see">
              <p>A ProfilePolicy captures running jobs by itself, within a budget, when an alert or a trigger fires.</p>
              <p>
                Make one on Kubernetes: <code>kubectl explain profilepolicy.spec</code>
              </p>
            </Empty>
          ) : (
            <DataTable<Policy> label="Policies" columns={columns()} rows={items} rowKey={({ namespace, name }) => `${namespace}/${name}`} rowHeight={44} minWidth={860} />
          )
        }
      </Loaded>
    </div>
  );
}

function columns(): Column<Policy>[] {
  const now = Date.now();
  return [
    {
      id: "name",
      header: "Policy",
      width: "220px",
      cell: ({ namespace, name }) => (
        <div className="two-lines">
          <Link to="/policies/$namespace/$name" params={{ namespace, name }}>
            <Name text={name} most={48} />
          </Link>
          <span className="quiet">
            <Name text={namespace} most={32} />
          </span>
        </div>
      ),
    },
    { id: "triggers", header: "Triggers", cell: ({ triggers }) => <Name text={triggers.join(", ")} most={160} /> },
    { id: "ready", header: "State", width: "200px", cell: (row) => <Name text={row.ready ? (row.mode === "DryRun" ? "dry run" : "watching") : row.message || "not seen yet"} most={120} /> },
    { id: "fired", header: "Fired", width: "72px", numeric: true, cell: ({ fired }) => formatCount(fired) },
    { id: "captured", header: "Captured", width: "84px", numeric: true, cell: ({ captured }) => formatCount(captured) },
    { id: "suppressed", header: "Suppressed", width: "116px", numeric: true, cell: ({ suppressed }) => formatCount(suppressed) },
    {
      id: "last",
      header: "Last fired",
      width: "110px",
      numeric: true,
      cell: ({ last_fired_unix_ns }) => <time title={formatDate(last_fired_unix_ns)}>{formatAgo(last_fired_unix_ns, now)}</time>,
    },
  ];
}
