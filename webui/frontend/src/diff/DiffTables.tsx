import type { ReactNode } from "react";
import type { Diff } from "@/api/models";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { formatDuration } from "@/units/durations";
import { formatBytes, formatChange, formatMeasure, formatRate } from "@/units/quantities";
import { measureName, sentenceCase } from "@/units/text";

type Measure = NonNullable<Diff["measures"]>[number];
type Kernel = NonNullable<Diff["kernels"]>[number];
type Collective = NonNullable<Diff["collectives"]>[number];

const change = (before: number, after: number) => (before > 0 ? (after - before) / before : null);

/** A change that a test has shown stands out; what is noise stays quiet. */
function Shown({ verdict, children }: { verdict: string | undefined; children: ReactNode }) {
  if (verdict === "more") return <strong className="bad">{children}</strong>;
  if (verdict === "less") return <strong className="good">{children}</strong>;
  return <span className="quiet">{children}</span>;
}

const VERDICTS: Record<string, string> = { more: "more", less: "less", not_shown: "no change shown", not_judged: "too little to tell" };

export function DiffTables({ diff }: { diff: Diff }) {
  const { measures = [], kernels = [], collectives = [] } = diff;
  return (
    <>
      <Section id="measures" title="Measures" note="per iteration, mean over iterations and ranks">
        <DataTable<Measure> label="Measures" columns={MEASURES} rows={measures} rowKey={({ measure }) => measure} minWidth={860} />
      </Section>
      <Section id="kernels" title="Kernels that differ most" note="per rank and iteration">
        {kernels.length > 0 ? <DataTable<Kernel> label="Kernels" columns={KERNELS} rows={kernels} rowKey={({ name }) => name} minWidth={960} /> : <p className="quiet">No device work in both.</p>}
      </Section>
      <Section id="collectives" title="Collectives that differ most" note="per rank and iteration; waiting included, not tested">
        {collectives.length > 0 ? (
          <DataTable<Collective> label="Collectives" columns={COLLECTIVES} rows={collectives} rowKey={(row, index) => `${row.kind} ${row.group} ${index}`} minWidth={960} />
        ) : (
          <p className="quiet">No collectives in both.</p>
        )}
      </Section>
      <Section id="stragglers" title="Stragglers">
        <dl className="facts">
          {(["before", "after"] as const).map((when) => {
            const side = diff[`stragglers_${when}`];
            return (
              <div key={when}>
                <dt>{sentenceCase(when)}</dt>
                <dd>{side ? `${sentenceCase(side.verdict)}${side.ranks?.length ? `: rank ${side.ranks.join(", ")} (${side.causes?.map(sentenceCase).join(", ")})` : ""}` : "no verdict"}</dd>
              </div>
            );
          })}
        </dl>
      </Section>
    </>
  );
}

/** Two ends, or one text where both read alike; with the minus sign that changes have. */
const formatInterval = (low: string, high: string) => (low === high ? low : `${low} … ${high}`).replaceAll("-", "−");

const MEASURES: Column<Measure>[] = [
  { id: "measure", header: "Measure", cell: ({ measure }) => measureName(measure) },
  { id: "before", header: "Before", width: "110px", numeric: true, cell: (row) => formatMeasure(row.before, row.unit) },
  { id: "after", header: "After", width: "110px", numeric: true, cell: (row) => formatMeasure(row.after, row.unit) },
  { id: "change", header: "Change", width: "120px", numeric: true, cell: (row) => <Shown verdict={row.verdict}>{formatChange(change(row.before, row.after))}</Shown> },
  {
    id: "interval",
    header: "Interval of the difference",
    width: "220px",
    numeric: true,
    cell: (row) => (row.low == null || row.high == null ? "–" : formatInterval(formatMeasure(row.low, row.unit), formatMeasure(row.high, row.unit))),
  },
  { id: "verdict", header: "Verdict", width: "150px", cell: (row) => VERDICTS[row.verdict ?? "not_judged"] },
];

const KERNELS: Column<Kernel>[] = [
  { id: "name", header: "Name", cell: ({ name }) => <Name text={name} most={72} code /> },
  { id: "before", header: "Before", width: "100px", numeric: true, cell: (row) => formatDuration(row.before_ns) },
  { id: "after", header: "After", width: "100px", numeric: true, cell: (row) => formatDuration(row.after_ns) },
  { id: "change", header: "Change", width: "120px", numeric: true, cell: (row) => <Shown verdict={row.verdict}>{formatChange(change(row.before_ns, row.after_ns))}</Shown> },
  { id: "mean", header: "Mean launch", width: "180px", numeric: true, cell: (row) => `${formatDuration(row.before_mean_ns)} → ${formatDuration(row.after_mean_ns)}` },
  { id: "verdict", header: "Verdict", width: "150px", cell: (row) => VERDICTS[row.verdict ?? "not_judged"] },
];

const COLLECTIVES: Column<Collective>[] = [
  { id: "kind", header: "Collective", width: "150px", cell: ({ kind }) => sentenceCase(kind) },
  { id: "group", header: "Process group", cell: ({ group }) => <Name text={group || "not named"} most={40} /> },
  { id: "size", header: "Size", width: "100px", numeric: true, cell: (row) => formatBytes(row.message_bytes) },
  { id: "before", header: "Before", width: "100px", numeric: true, cell: (row) => formatDuration(row.before_ns) },
  { id: "after", header: "After", width: "100px", numeric: true, cell: (row) => formatDuration(row.after_ns) },
  { id: "change", header: "Change", width: "120px", numeric: true, cell: (row) => formatChange(change(row.before_ns, row.after_ns)) },
  { id: "bus", header: "Bus bandwidth", width: "190px", numeric: true, cell: (row) => `${formatRate(row.before_bus_bytes_per_s)} → ${formatRate(row.after_bus_bytes_per_s)}` },
];
