import type { KindTotal } from "@/api/models";
import { useWidth } from "@/charts/canvas";
import { Legend } from "@/charts/Legend";
import { StackedRow } from "@/charts/StackedRow";
import { Section } from "@/parts/Section";
import { partsOf } from "@/theme/classes";
import { formatDuration } from "@/units/durations";
import { plural } from "@/units/quantities";
import type { SectionProps } from "../sections";

/** Where the time of all ranks of a kind went. GPU and CPU ranks are never added together. */
export function TotalsSection({ report: { totals } }: SectionProps) {
  return (
    <Section id="time" title="Where the time went" note="sum over ranks">
      {totals.length === 0 ? <p className="quiet">No rank has a trace with work in it.</p> : totals.map((total) => <Total key={total.kind} total={total} />)}
    </Section>
  );
}

function Total({ total }: { total: KindTotal }) {
  const [place, width] = useWidth<HTMLDivElement>();
  const times: Record<string, number> = { ...total.time_ns };
  const idle: Record<string, number> = { ...total.idle_ns };
  const parts = partsOf((name) => (name.startsWith("idle_") ? idle[name.slice(5)] : times[name]));
  return (
    <div className="total">
      <p>
        {plural(total.ranks, total.kind === "gpu" ? "GPU rank" : "CPU-only rank")} · {formatDuration(total.time_ns.span)}{" "}
        <span className="quiet">{total.time_basis === "device" ? "measured on the devices" : "measured by operators on the host"}</span>
      </p>
      <div ref={place}>{width > 0 && <StackedRow parts={parts} longest={total.time_ns.span || 1} width={width} height={26} />}</div>
      <Legend values={parts} />
    </div>
  );
}
