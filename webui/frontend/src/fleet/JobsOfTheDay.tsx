// Jobs that told anything within the last day, captured or not, with the marks of alerts and policies.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { JobOfDay } from "@/api/models";
import { jobsQuery } from "@/api/queries";
import { ShareBar } from "@/charts/ShareBar";
import { Sparkline } from "@/charts/Sparkline";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { CaptureLink } from "@/requests/CaptureLink";
import { formatDate } from "@/units/dates";
import { formatDuration, threeDigits } from "@/units/durations";
import { formatPower, plural } from "@/units/quantities";

export function JobsOfTheDay() {
  const { data } = useQuery(jobsQuery);
  if (!data || data.items.length === 0) return null;
  return (
    <Section id="jobs" title="Jobs of the last day" note={`${plural(data.total, "job")}, also those without a capture under their name; those of the last 15 minutes first, the idlest before others`}>
      <DataTable<JobOfDay> label="Jobs of the last day" columns={COLUMNS} rows={data.items} rowKey={({ namespace, kind, name }) => `${namespace}/${kind}/${name}`} rowHeight={44} minWidth={940} />
    </Section>
  );
}

const COLUMNS: Column<JobOfDay>[] = [
  {
    id: "name",
    header: "Job",
    width: "270px",
    cell: ({ namespace, kind, name, captured, running }) => (
      <div className="two-lines">
        <Link to="/fleet/$namespace/$kind/$name" params={{ namespace, kind: kind || "-", name }}>
          <Name text={name} most={48} />
        </Link>
        <span className="quiet" title={running ? "It reported figures within the last 15 minutes" : "It has reported nothing for 15 minutes"}>
          <Name text={namespace} most={24} /> · {running ? "active" : "ended"}{captured ? "" : ", no capture of its name"}
        </span>
      </div>
    ),
  },
  { id: "busy", header: "GPU activity", width: "116px", numeric: true, explanation: "of the SMs where the device tells it, else GPU busy", cell: ({ activity }) => <ShareBar share={activity} color="--compute" /> },
  { id: "cpu", header: "Host CPU", width: "108px", numeric: true, cell: ({ cpu_busy }) => <ShareBar share={cpu_busy} color="--memory" /> },
  { id: "iteration", header: "Iteration", width: "92px", numeric: true, cell: ({ iteration_ns }) => formatDuration(iteration_ns) },
  { id: "power", header: "Power", width: "80px", numeric: true, cell: ({ power_watts }) => formatPower(power_watts === null ? null : power_watts * 1000) },
  {
    id: "history",
    header: "Iterations/s",
    width: "112px",
    explanation: "of the last day, the oldest first",
    cell: ({ rates, iterations_per_second }) => (
      <Sparkline values={rates} summary={iterations_per_second === null ? "iterations per second of the last day" : `iterations per second of the last day, now ${threeDigits(iterations_per_second)}`} />
    ),
  },
  {
    id: "marks",
    header: "Alerts and policies",
    cell: ({ actions }) => {
      const [first] = actions;
      if (!first) return <span className="quiet">–</span>;
      return (
        <div className="two-lines">
          <Link to="/policies/$namespace/$name" params={{ namespace: first.namespace, name: first.policy }} title={first.message}>
            <Name text={`${first.action}${first.reason && `: ${first.reason}`}`} most={60} />
          </Link>
          <span className="quiet">
            <Name text={first.message} most={120} /> · {formatDate(first.at_unix_ns)}
          </span>
        </div>
      );
    },
  },
  { id: "capture", header: "", width: "84px", cell: ({ namespace, kind, name, running }) => running && <CaptureLink namespace={namespace} kind={kind} name={name} small /> },
];

/** Leads to the jobs that run and were never captured, where there are any. */
export function NeverCaptured() {
  const { data } = useQuery(jobsQuery);
  const count = data?.items.filter(({ running, captured }) => running && !captured).length ?? 0;
  if (count === 0) return null;
  return <a href="#jobs">{plural(count, "running job")} never captured</a>;
}
