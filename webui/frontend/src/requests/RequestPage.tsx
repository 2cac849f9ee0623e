// One request as it goes on: the ranks, the stages, what was asked, and what to do next.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { path, postJson } from "@/api/client";
import { type Following, useFollowing } from "@/api/follow";
import type { RequestDetail } from "@/api/models";
import { requestQuery, whoamiQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Failed, Loaded } from "@/parts/States";
import { formatDate, unixMillis } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { plural } from "@/units/quantities";
import { capital } from "@/units/text";
import { LedgerGrid } from "./LedgerGrid";
import { LedgerTable } from "./LedgerTable";
import type { RequestSearch } from "./search";
import { Stacks } from "./Stacks";
import { StageTimeline } from "./StageTimeline";
import { StateMark } from "./StateMark";

const FOLLOWING: Record<Exclude<Following, "finished">, string> = {
  events: "Live: each change is shown as it happens.",
  other_tab: "Live: this page asks every 3 seconds, because another tab gets the events.",
  polling: "Events do not arrive; this page asks every 3 seconds.",
};

export function RequestPage() {
  const { namespace, uid } = useParams({ from: "/requests/$namespace/$uid" });
  const query = useQuery(requestQuery(namespace, uid));
  return (
    <div className="page">
      <Loaded query={query} what="the request" rows={8}>
        {(detail) => <Detail detail={detail} namespace={namespace} uid={uid} />}
      </Loaded>
    </div>
  );
}

function Detail({ detail, namespace, uid }: { detail: RequestDetail; namespace: string; uid: string }) {
  const { request, ledger } = detail;
  const hasLedger = detail.version !== "";
  const search = useSearch({ from: "/requests/$namespace/$uid" });
  const navigate = useNavigate({ from: "/requests/$namespace/$uid" });
  const following = useFollowing(namespace, uid, request.finished);
  const change = (next: Partial<RequestSearch>) => void navigate({ search: (before) => ({ ...before, ...next }), resetScroll: false });
  const rank = search.line === undefined ? undefined : Number(search.line);
  const selected = rank === undefined ? undefined : ledger.rank.indexOf(rank);
  const failed = ledger.state.filter((state) => state === "FAILED").length;
  const onSelect = (line: number) => change({ line: line === selected ? undefined : String(ledger.rank[line]) });
  return (
    <>
      <title>{`${request.name || uid} · fleetprof`}</title>
      <Head detail={detail} />
      <p className="lead">
        {hasLedger ? (
          <StateMark state={request.state} finished={request.finished} />
        ) : (
          "The store holds this request and no ledger: nobody has begun with it, or its ledger is lost. This page asks again every 3 seconds."
        )}{" "}
        {request.message && <Name text={request.message} most={600} />}
      </p>
      {detail.next_step && !request.has_report && <p className="next-step">{capital(detail.next_step)}</p>}
      {following !== "finished" && hasLedger && (
        <p className="quiet" role="status">
          {FOLLOWING[following]}
        </p>
      )}
      {detail.asks_for_stacks ? (
        request.state === "Complete" && <Stacks namespace={namespace} uid={uid} />
      ) : (
        <>
          <Section id="ledger" title="Ranks" note={plural(ledger.rank.length, "rank")}
            tools={
              failed > 0 && (
                <label>
                  <input type="checkbox" checked={search.show === "failed"} onChange={(event) => change({ show: event.target.checked ? "failed" : undefined })} /> only failed ({failed})
                </label>
              )
            }
          >
            {ledger.rank.length === 0 ? (
              <Empty title="No rank is in the ledger yet">
                <p>{request.finished ? "The request ended before a rank was found." : "Ranks appear here when their sidecars are found."}</p>
              </Empty>
            ) : (
              <>
                <LedgerGrid ledger={ledger} selected={selected} onSelect={onSelect} />
                <LedgerTable ledger={ledger} onlyFailed={search.show === "failed"} selected={selected} onSelect={onSelect} />
              </>
            )}
          </Section>
          <Section id="stages" title="Stages" note="first to last rank, after the request was submitted">
            <StageTimeline stages={detail.stages} />
            {detail.canary && (
              <p className="quiet">
                Canary{detail.canary.rank !== null && ` (rank ${detail.canary.rank})`}: {detail.canary.verdict || "under way"} <Name text={detail.canary.message} />
              </p>
            )}
          </Section>
        </>
      )}
      <Section id="conditions" title="Conditions">
        {detail.conditions.length === 0 ? (
          <p className="quiet">None yet.</p>
        ) : (
          <dl className="facts wide">
            {detail.conditions.map((condition) => (
              <div key={condition.type}>
                <dt>
                  {condition.type}: {condition.status}
                </dt>
                <dd>
                  <strong>{condition.reason}</strong> <Name text={condition.message} most={600} />
                  {condition.transition_unix_ns && <span className="quiet"> · {formatDate(condition.transition_unix_ns)}</span>}
                </dd>
              </div>
            ))}
          </dl>
        )}
      </Section>
      <Section id="yaml" title="What was asked" tools={detail.yaml && <CopyButton text={detail.yaml} label="Copy the YAML" />}>
        {detail.yaml ? <pre className="code">{detail.yaml}</pre> : <p className="quiet">The store has no copy of the request.</p>}
        {detail.command && (
          <div className="row">
            <code>{detail.command}</code> <CopyButton text={detail.command} />
          </div>
        )}
      </Section>
    </>
  );
}

function Head({ detail }: { detail: RequestDetail }) {
  const { request } = detail;
  const { namespace, uid } = request;
  const client = useQueryClient();
  const mayCapture = useQuery(whoamiQuery).data?.may_capture;
  const cancel = useMutation({
    mutationFn: () => postJson(`${path("requests", namespace, uid)}/cancel`, {}),
    onSettled: () => client.invalidateQueries({ queryKey: requestQuery(namespace, uid).queryKey }),
  });
  const [began, ended] = [unixMillis(request.submitted_unix_ns), unixMillis(request.completed_unix_ns)];
  return (
    <>
      <nav className="crumbs" aria-label="Place">
        <Link to="/requests">Requests</Link> / <Name text={namespace} most={40} />
      </nav>
      <header className="page-head">
        <h1>
          <Name text={request.name || uid} most={80} />
        </h1>
        <p className="quiet">
          <Link to="/fleet/$namespace/$kind/$name" params={{ namespace, kind: request.kind || "-", name: request.workload || "-" }}>
            <Name text={`${request.kind} ${request.workload}`} most={60} />
          </Link>{" "}
          · asked {formatDate(request.submitted_unix_ns)}
          {request.requester && <> by <Name text={request.requester} most={40} /></>}
          {began !== null && ended !== null && <> · took {formatDuration((ended - began) * 1e6)}</>}
        </p>
        <div className="tools">
          {request.has_report && (
            <Link to="/reports/$namespace/$uid" params={{ namespace, uid }} className="button primary">
              Report
            </Link>
          )}
          {mayCapture && detail.yaml && (
            <Link to="/requests" search={{ capture: "new", repeat: `${namespace}/${uid}` }} className="button">
              Ask again
            </Link>
          )}
          {!request.finished && detail.may_cancel && (
            <button type="button" onClick={() => cancel.mutate()} disabled={cancel.isPending}>
              {cancel.isPending ? "Cancelling…" : "Cancel"}
            </button>
          )}
        </div>
      </header>
      {cancel.error && <Failed error={cancel.error} />}
    </>
  );
}
