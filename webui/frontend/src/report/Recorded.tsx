// What was recorded, what was not, and what was repaired while reading: how far the figures above can be trusted.
import { Link } from "@tanstack/react-router";
import { ALONE } from "@/api/alone";
import type { ReportPage } from "@/api/models";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { explainReason } from "@/requests/ledgerStates";
import { formatDate } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { formatBytes, formatCount, plural } from "@/units/quantities";
import { sentenceCase } from "@/units/text";
import type { SectionProps } from "./sections";

const sayUploaded = ({ uploaded, targeted }: NonNullable<ReportPage["ledger"]>) => `${formatCount(uploaded)} of ${plural(targeted, "rank")} uploaded`;

export function Recorded({ report }: SectionProps) {
  const { facts, ledger, request, problems } = report;
  const rows: [string, React.ReactNode][] = [
    ["Ranks", `${formatCount(facts.rank_count)}${facts.world_size === null ? "" : ` of ${formatCount(facts.world_size)} in the job`}`],
    ["Events", formatCount(facts.event_count)],
    ["Traces", formatBytes(facts.trace_bytes)],
    ["Iterations", `${formatCount(facts.iteration_count)}${facts.first_iteration === null ? "" : ` from number ${facts.first_iteration}`}`],
    ["Start", facts.start_spread_ns === null ? "–" : `within ${formatDuration(facts.start_spread_ns)}${facts.same_first_iteration ? ", with the same iteration" : ""}`],
    ["Cut short", facts.truncated_ranks === 0 ? "no trace" : plural(facts.truncated_ranks, "trace")],
    ["Made", `${formatDate(report.made_unix_ns)} by ${report.made_by || "?"}`],
  ];
  if (request) {
    rows.push(
      ["Outcome", request.outcome && `${request.outcome}${request.message ? `: ${request.message}` : ""}`],
      ["Collected", request.collect === null ? "not known" : request.collect.join(", ") || "nothing beyond the default"],
      ["Asked by", request.requester],
    );
  }
  return (
    <Section id="recorded" title="What was recorded">
      <dl className="facts">
        {rows.filter(([, value]) => value).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "string" ? <Name text={value} /> : value}</dd>
          </div>
        ))}
      </dl>
      {ledger && (
        <p>
          {ALONE ? (
            <span>{sayUploaded(ledger)}</span>
          ) : (
            <Link to="/requests/$namespace/$uid" params={{ namespace: report.namespace, uid: report.uid }} hash="ledger">
              {sayUploaded(ledger)}
            </Link>
          )}
          {ledger.failed > 0 && <span className="bad"> · {formatCount(ledger.failed)} failed</span>}
        </p>
      )}
      {ledger && ledger.reasons.length > 0 && (
        <ul>
          {ledger.reasons.map(({ reason, count, ranks, message }) => (
            <li key={reason}>
              <a href={explainReason(reason)} rel="noreferrer">
                {reason}
              </a>
              : {plural(count, "rank")} ({ranks.join(", ")}
              {count > ranks.length && ", …"}) <Name text={message} />
            </li>
          ))}
        </ul>
      )}
      {problems.length > 0 && (
        <>
          <h3>While reading</h3>
          <ul>
            {problems.map((problem, index) => (
              // oxlint-disable-next-line react/no-array-index-key
              <li key={`${problem.kind} ${index}`}>
                {sentenceCase(problem.kind)}
                {problem.rank != null && `, rank ${problem.rank}`}
                {problem.count > 1 && ` (${formatCount(problem.count)}×)`}: <Name text={problem.message} most={500} />
              </li>
            ))}
          </ul>
          {report.problem_count > problems.length && <p className="quiet">and {plural(report.problem_count - problems.length, "other")}</p>}
        </>
      )}
    </Section>
  );
}
