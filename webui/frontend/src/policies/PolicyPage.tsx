// One policy: what fired, what was captured, what was suppressed and why, the latest first; and its spec.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { PolicyAction } from "@/api/models";
import { policyQuery } from "@/api/queries";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDate } from "@/units/dates";
import { joinSentences } from "@/units/text";
import { outcomeOf } from "./outcome";

export function PolicyPage() {
  const { namespace, name } = useParams({ from: "/policies/$namespace/$name" });
  const query = useQuery(policyQuery(namespace, name));
  return (
    <div className="page">
      <title>{`${name} · fleetprof`}</title>
      <nav className="crumbs" aria-label="Place">
        <Link to="/policies">Policies</Link> / <Name text={namespace} most={40} />
      </nav>
      <header className="page-head">
        <h1>
          <Name text={name} most={80} />
        </h1>
        {query.data && (
          <p className="quiet">
            fired {query.data.policy.fired}, captured {query.data.policy.captured}, suppressed {query.data.policy.suppressed}
          </p>
        )}
      </header>
      <Loaded query={query} what="the policy" rows={6}>
        {({ policy, actions, spec_yaml }) => (
          <>
            <p>
              <Name text={`${policy.mode === "DryRun" ? "Dry run" : "Captures"}: ${policy.message || "the operator has not seen it yet"}`} most={400} />
            </p>
            <Section id="actions" title="What it did" note="captures of the last day and the latest suppressions">
              {actions.length === 0 ? (
                <Empty title="Nothing has fired yet" />
              ) : (
                <DataTable<PolicyAction> label="What it did" columns={COLUMNS} rows={actions} rowKey={(_, index) => index} rowHeight={44} minWidth={900} />
              )}
            </Section>
            <Section id="spec" title="Spec">
              <pre className="yaml">{spec_yaml}</pre>
            </Section>
          </>
        )}
      </Loaded>
    </div>
  );
}

const COLUMNS: Column<PolicyAction>[] = [
  { id: "at", header: "When", width: "190px", cell: ({ at_unix_ns }) => formatDate(at_unix_ns) },
  {
    id: "job",
    header: "Job",
    width: "200px",
    cell: ({ namespace, workload_kind, workload_name }) => (
      <Link to="/fleet/$namespace/$kind/$name" params={{ namespace, kind: workload_kind || "-", name: workload_name }}>
        <Name text={workload_name} most={48} />
      </Link>
    ),
  },
  { id: "trigger", header: "Trigger", width: "120px", cell: ({ trigger }) => <Name text={trigger} most={40} /> },
  {
    id: "action",
    header: "Outcome",
    width: "240px",
    cell: (row) => {
      const { namespace, uid } = row;
      const outcome = <Name text={outcomeOf(row)} most={60} />;
      return uid ? (
        <Link to="/requests/$namespace/$uid" params={{ namespace, uid }}>
          {outcome}
        </Link>
      ) : (
        outcome
      );
    },
  },
  { id: "why", header: "Why", cell: ({ message, headline }) => <Name text={joinSentences(message, headline)} most={300} /> },
];
