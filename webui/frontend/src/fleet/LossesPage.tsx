// For those who pay: GPU-hours and energy of the last day that the first finding of each job cost, by namespace, label or job.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { LossPage, LossRow } from "@/api/models";
import { lossesQuery } from "@/api/queries";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { threeDigits } from "@/units/durations";
import { formatPermille, formatShare, plural } from "@/units/quantities";
import { sentenceCase } from "@/units/text";
import { type LossSum, sumLosses } from "./losses";

const hours = (value: number | null) => (value === null ? "–" : `${threeDigits(value)} h`);
const energy = (value: number | null) => (value === null ? "–" : `${threeDigits(value)} kWh`);

const shareOf = ({ gpuHours, lostGpuHours }: LossSum) => (gpuHours && lostGpuHours !== null ? lostGpuHours / gpuHours : null);

export function LossesPage() {
  const query = useQuery(lossesQuery);
  return (
    <div className="page">
      <title>Losses · fleetprof</title>
      <header className="page-head">
        <h1>Losses</h1>
        <p className="quiet">of the last day</p>
        <div className="tools">
          <a href="/losses.csv" download className="button small">
            CSV
          </a>
        </div>
      </header>
      <Loaded query={query} what="the losses" rows={6}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty title="No job was captured, and none told anything">
              <p>A job appears here with its first capture or its first figures.</p>
            </Empty>
          ) : (
            <Losses page={page} />
          )
        }
      </Loaded>
    </div>
  );
}

function Losses({ page }: { page: LossPage }) {
  const { by = "namespace", least = "" } = useSearch({ from: "/losses" });
  const navigate = useNavigate({ from: "/losses" });
  const from = Number(least) || 0;
  const [total] = sumLosses(page.items, "all");
  const sums = sumLosses(page.items, by).filter(({ lostGpuHours }) => (lostGpuHours ?? 0) >= from);
  const rows = page.items.filter(({ lost_gpu_hours: lost }) => from === 0 || (lost ?? 0) >= from);
  return (
    <>
      <dl className="facts">
        <Fact name="Lost" value={total!.lostGpuHours === null ? "not known" : `${hours(total!.lostGpuHours)} of GPUs`} />
        <Fact name="Of" value={total!.gpuHours === null ? "not known" : `${hours(total!.gpuHours)} of GPUs`} />
        <Fact name="Share" value={formatShare(shareOf(total!))} />
        <Fact name="Energy" value={energy(total!.lostKwh)} />
        <Fact name="Jobs" value={`${plural(page.total, "job")}, ${total!.unknown} not known`} />
      </dl>
      <p className="quiet">
        What the first finding of the last report would save, times the GPUs of that report, times the hours in which the job told its pace.
        The potential saving is that of the capture: it has no interval, and the job may have changed since. Not known are jobs that have no
        report, have no GPU, or told nothing.
      </p>
      <form className="losses-form" onSubmit={(event) => event.preventDefault()}>
        <label>
          By{" "}
          <select value={by} onChange={(event) => void navigate({ search: (before) => ({ ...before, by: event.target.value }) })}>
            <option value="namespace">namespace</option>
            <option value="job">job</option>
            {page.label_keys.map((key) => (
              <option key={key} value={key}>
                label {key}
              </option>
            ))}
          </select>
        </label>{" "}
        <label>
          Lost at least{" "}
          <input
            type="number"
            min={0}
            step="any"
            value={least}
            onChange={(event) => void navigate({ search: (before) => ({ ...before, least: event.target.value || undefined }), replace: true })}
          />{" "}
          GPU-hours
        </label>
      </form>
      <Section id="sums" title="Sums" note={`by ${by === "namespace" || by === "job" ? by : `label ${by}`}`}>
        <DataTable<LossSum> label="Sums" columns={SUMS} rows={sums} rowKey={({ key }) => key} minWidth={640} />
      </Section>
      <Section id="jobs" title="Jobs" note="captured or not">
        <DataTable<LossRow> label="Jobs" columns={JOBS} rows={rows} rowKey={({ namespace, kind, name }) => `${namespace}/${kind}/${name}`} rowHeight={44} minWidth={860} />
      </Section>
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

const SUMS: Column<LossSum>[] = [
  { id: "key", header: "Who", cell: ({ key }) => <Name text={key} most={80} /> },
  { id: "lost", header: "Lost", width: "110px", numeric: true, cell: ({ lostGpuHours }) => hours(lostGpuHours) },
  { id: "hours", header: "GPU-hours", width: "110px", numeric: true, cell: ({ gpuHours }) => hours(gpuHours) },
  { id: "share", header: "Share", width: "80px", numeric: true, cell: (sum) => formatShare(shareOf(sum)) },
  { id: "energy", header: "Energy", width: "110px", numeric: true, cell: ({ lostKwh }) => energy(lostKwh) },
  { id: "jobs", header: "Jobs", width: "150px", numeric: true, cell: ({ jobs, unknown }) => `${jobs}${unknown ? `, ${unknown} not known` : ""}` },
];

const JOBS: Column<LossRow>[] = [
  {
    id: "name",
    header: "Job",
    cell: ({ namespace, kind, name, labels }) => (
      <div className="two-lines">
        <Link to="/fleet/$namespace/$kind/$name" params={{ namespace, kind: kind || "-", name }}>
          <Name text={name} most={48} />
        </Link>
        <span className="quiet">
          <Name text={[namespace, ...labels].join(" · ")} most={60} />
        </span>
      </div>
    ),
  },
  {
    id: "finding",
    header: "First finding",
    width: "190px",
    cell: ({ namespace, report, finding }) =>
      report === null ? (
        <span className="quiet">no report</span>
      ) : (
        <Link to="/reports/$namespace/$uid" params={{ namespace, uid: report }}>
          {finding ? sentenceCase(finding) : "nothing found"}
        </Link>
      ),
  },
  { id: "gain", header: "Potential saving", width: "120px", numeric: true, cell: ({ gain_permille }) => formatPermille(gain_permille) },
  { id: "gpus", header: "GPUs", width: "70px", numeric: true, cell: ({ gpus }) => (gpus === null ? "–" : String(gpus)) },
  { id: "hours", header: "Hours", width: "80px", numeric: true, cell: (row) => hours(row.hours) },
  { id: "lost", header: "Lost", width: "100px", numeric: true, explanation: "GPU-hours", cell: ({ lost_gpu_hours }) => hours(lost_gpu_hours) },
  { id: "energy", header: "Energy", width: "100px", numeric: true, cell: ({ lost_kwh }) => energy(lost_kwh) },
];
