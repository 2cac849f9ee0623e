// Samples of devices and hosts over one time axis, a chart per quantity.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { SamplePage, SampleSeries } from "@/api/models";
import { samplesQuery } from "@/api/queries";
import { type Line, TimeSeries } from "@/charts/TimeSeries";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDate } from "@/units/dates";
import { threeDigits } from "@/units/durations";
import { formatBytes, formatRate, plural } from "@/units/quantities";
import { sentenceCase, visibleText } from "@/units/text";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";

export function SamplesSection({ view }: SectionProps) {
  const query = useQuery(samplesQuery(view.namespace, view.uid, view.search.rank));
  return (
    <Section id="samples" title="Samples" note={view.search.rank === undefined ? "devices and hosts over time" : `rank ${view.search.rank} and its host`} lazyHeight={300}>
      <Loaded query={query} what="samples">
        {(page) =>
          page.series.length === 0 ? (
            <Empty title="No samples">
              <p>The agent takes samples of devices and hosts during a capture; these ranks had none.</p>
            </Empty>
          ) : (
            <Charts page={page} view={view} />
          )
        }
      </Loaded>
    </Section>
  );
}

/** Series of one quantity together, devices before hosts, in the order of their first. */
export function groupSeries(series: readonly SampleSeries[]): { name: string; unit: string; of: string; series: SampleSeries[] }[] {
  const groups = new Map<string, { name: string; unit: string; of: string; series: SampleSeries[] }>();
  for (const one of series) {
    const key = `${one.of} ${one.name} ${one.unit}`;
    const group = groups.get(key) ?? { name: one.name, unit: one.unit, of: one.of, series: [] };
    group.series.push(one);
    groups.set(key, group);
  }
  return [...groups.values()].toSorted((a, b) => a.of.localeCompare(b.of));
}

function Charts({ page, view }: { page: SamplePage; view: ReportView }) {
  const { rank } = view.search;
  // New lists would make every chart anew.
  const charts = useMemo(() => {
    const sources = [...new Set(page.series.map(nameOf))];
    return groupSeries(page.series).map((group) => ({ ...group, lines: group.series.map((one) => toLine(one, sources, rank, page.late)) }));
  }, [page, rank]);
  const span = useMemo((): [number, number] => {
    const times = page.series.flatMap(({ at_ns }) => [at_ns[0] ?? 0, at_ns.at(-1) ?? 0]);
    return [Math.min(...times), Math.max(...times)];
  }, [page]);
  return (
    <>
      <p className="quiet">
        Seconds after {formatDate(page.origin_unix_ns)}
        {page.ranks_with_samples > 0 && `; devices of ${plural(page.ranks_with_samples, "rank")} were sampled`}
        {page.late.length > 0 && "; late ranks are drawn first and thick"}. The pointer reads all charts; drag to zoom, double-click to zoom out.
      </p>
      {charts.map(({ of, name, unit, lines }) => (
        <figure key={`${of} ${name}`}>
          <figcaption>
            {sentenceCase(name)} <span className="quiet">{unit} · {of}</span>
          </figcaption>
          <TimeSeries lines={lines} title={sentenceCase(name)} unit={unit} say={SAY[unit] ?? sayNumber} span={span} group="samples" />
        </figure>
      ))}
    </>
  );
}

const sayNumber = (value: number) => threeDigits(value);
const SAY: Record<string, (value: number) => string> = {
  bytes: formatBytes,
  "bytes/s": formatRate,
  "%": (value) => `${threeDigits(value)} %`,
  W: (value) => `${threeDigits(value)} W`,
  MHz: (value) => `${threeDigits(value)} MHz`,
  "°C": (value) => `${threeDigits(value)} °C`,
};

const nameOf = (series: SampleSeries) => (series.of === "host" ? series.host_name : `rank ${series.ranks.join(", ")}`);

function toLine(series: SampleSeries, sources: readonly string[], rank: number | undefined, late: readonly number[]): Line {
  const isLate = series.ranks.some((one) => one !== null && late.includes(one));
  const name = nameOf(series);
  return {
    name: visibleText(isLate ? `${name} · late` : name),
    at_ns: series.at_ns,
    values: series.values,
    color: sources.indexOf(name),
    strong: rank === undefined ? isLate : series.ranks.includes(rank),
  };
}
