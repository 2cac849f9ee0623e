import { Link } from "@tanstack/react-router";
import { ALONE } from "@/api/alone";
import { path } from "@/api/client";
import type { ReportPage } from "@/api/models";
import { Name } from "@/parts/Name";
import { CaptureLink } from "@/requests/CaptureLink";
import { formatDate } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { formatPower, plural } from "@/units/quantities";
import { readJob } from "./target";

/** The job's captures, where the target is a job. */
function TargetLink({ namespace, target }: { namespace: string; target: string }) {
  const job = readJob(target);
  if (!job) return <Name text={target} most={60} />;
  return (
    <Link to="/fleet/$namespace/$kind/$name" params={{ namespace, ...job }}>
      <Name text={target} most={60} />
    </Link>
  );
}

/** With another capture of the job, whose page offers other jobs too; without a job, with a workload of the fleet. */
function CompareLink({ namespace, uid, target }: { namespace: string; uid: string; target: string | undefined }) {
  const job = readJob(target ?? "");
  const compare = `${namespace}/${uid}`;
  return job ? (
    <Link to="/fleet/$namespace/$kind/$name" params={{ namespace, ...job }} search={{ compare }} className="button">
      Compare
    </Link>
  ) : (
    <Link to="/fleet" search={{ compare }} className="button">
      Compare
    </Link>
  );
}

/** To another capture of the job, or by the same labels. */
function CaptureAgain({ namespace, uid, target }: { namespace: string; uid: string; target: string }) {
  const job = readJob(target);
  return <CaptureLink namespace={namespace} kind={job?.kind ?? ""} name={job?.name ?? target} last={uid} />;
}

function Crumbs({ namespace, target }: { namespace: string; target: string | undefined }) {
  return (
    <nav className="crumbs" aria-label="Place">
      <Link to="/fleet">Fleet</Link> / <Name text={namespace} most={40} />
      {target && (
        <>
          {" / "}
          <TargetLink namespace={namespace} target={target} />
        </>
      )}
    </nav>
  );
}

export function ReportHead({ report }: { report: ReportPage }) {
  const { namespace, uid, facts, request } = report;
  const words = [
    plural(facts.rank_count, "rank"),
    facts.host_count > 0 && plural(facts.host_count, "host"),
    facts.iteration_count > 0 && plural(facts.iteration_count, "iteration"),
    facts.iteration_ns !== null && `${formatDuration(facts.iteration_ns)} each`,
    report.power_mw !== null && formatPower(report.power_mw),
  ].filter(Boolean);
  return (
    <>
      {ALONE ? <p className="crumbs">fleetprof report</p> : <Crumbs namespace={namespace} target={request?.target} />}
      <header className="page-head">
        <h1>
          <Name text={report.title || uid} most={80} />
        </h1>
        {report.has_timeline && (
          <Link to="/reports/$namespace/$uid/timeline" params={{ namespace, uid }}>
            Timeline
          </Link>
        )}
        <p className="quiet">
          {words.join(" · ")}
          {facts.devices.map((device) => (
            <span key={device}>
              {" · "}
              <Name text={device} most={40} />
            </span>
          ))}
          {facts.torch_versions.length > 0 && ` · PyTorch ${facts.torch_versions.join(", ")}`}
          {request?.submitted_unix_ns && ` · ${formatDate(request.submitted_unix_ns)}`}
        </p>
        {!ALONE && (
        <div className="tools">
          <Link to="/requests/$namespace/$uid" params={{ namespace, uid }} className="button">
            Request
          </Link>
          {request && <CaptureAgain namespace={namespace} uid={uid} target={request.target} />}
          <CompareLink namespace={namespace} uid={uid} target={request?.target} />
          <a className="button" title="the whole report as one file" download href={`${path("reports", namespace, uid, "files")}/report.html`}>
            report.html
          </a>
        </div>
        )}
      </header>
    </>
  );
}
