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
        {kernels.length > 0 ? <DataTable<Kernel> label="Kernels" columns={kernelColumns(Math.max(...kernels.flatMap((row) => [row.before_ns, row.after_ns])))} rows={kernels} rowKey={({ name }) => name} minWidth={960} /> : <p className="quiet">No device work in both.</p>}
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

/** Before above after, on the scale of all rows. */
function Pair({ row, longest }: { row: Kernel; longest: number }) {
  const width = (ns: number) => (longest > 0 ? (ns / longest) * 110 : 0);
  return (
    <svg width="110" height="18" aria-hidden="true">
      <rect y="1" width={width(row.before_ns)} height="7" fill="var(--idle)" />
      <rect y="10" width={width(row.after_ns)} height="7" fill="var(--compute)" />
    </svg>
  );
}

/** What became of a kernel: new ones and lost ones have no change in percent. */
function fate(row: Kernel): string {
  if (row.before_ns === 0) return "appeared";
  return row.after_ns === 0 ? "vanished" : VERDICTS[row.verdict ?? "not_judged"]!;
}

const kernelColumns = (longest: number): Column<Kernel>[] => [
  { id: "name", header: "Name", cell: ({ name, spoken_name }) => <Name text={spoken_name} whole={name} most={60} code /> },
  { id: "pair", header: "Before, after", width: "130px", explanation: "before in gray above after", cell: (row) => <Pair row={row} longest={longest} /> },
  { id: "before", header: "Before", width: "100px", numeric: true, cell: (row) => formatDuration(row.before_ns) },
  { id: "after", header: "After", width: "100px", numeric: true, cell: (row) => formatDuration(row.after_ns) },
  { id: "change", header: "Change", width: "120px", numeric: true, cell: (row) => <Shown verdict={row.verdict}>{formatChange(change(row.before_ns, row.after_ns))}</Shown> },
  { id: "mean", header: "Mean launch", width: "180px", numeric: true, cell: (row) => `${formatDuration(row.before_mean_ns)} → ${formatDuration(row.after_mean_ns)}` },
  { id: "verdict", header: "Verdict", width: "150px", cell: (row) => fate(row) },
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
