// Samples of devices and hosts over one time axis, a chart per quantity.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { SampleSeries, SampleSlice } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { type Line, TimeSeries } from "@/charts/TimeSeries";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDate } from "@/units/dates";
import { threeDigits } from "@/units/durations";
import { formatBytes, formatRate, plural } from "@/units/quantities";
import { sentenceCase, visibleText } from "@/units/text";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";
import { chooseSeries, groupSeries } from "./sampleSeries";

export function SamplesSection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "samples"));
  return (
    <Section id="samples" title="Samples" note={view.search.rank === undefined ? "devices and hosts over time" : `rank ${view.search.rank} and its host`} lazyHeight={300}>
      <Loaded query={query} what="samples">
        {(page) =>
          chooseSeries(page, view.search.rank).length === 0 ? (
            <Empty title="No samples">
              {page.cut > 0 ? (
                <p>Of {plural(page.ranks_with_samples, "rank")} with samples {plural(page.cut, "rank")} are in report.json alone.</p>
              ) : (
                <p>The agent takes samples of devices and hosts during a capture; these ranks had none.</p>
              )}
            </Empty>
          ) : (
            <Charts page={page} view={view} />
          )
        }
      </Loaded>
    </Section>
  );
}

function Charts({ page, view }: { page: SampleSlice; view: ReportView }) {
  const { rank } = view.search;
  const series = useMemo(() => chooseSeries(page, rank), [page, rank]);
  // New lists would make every chart anew.
  const charts = useMemo(() => {
    const sources = [...new Set(series.map(nameOf))];
    return groupSeries(series).map((group) => ({ ...group, lines: group.series.map((one) => toLine(one, sources, rank, page.late)) }));
  }, [page, series, rank]);
  const span = useMemo((): [number, number] => {
    const times = series.flatMap(({ at_ns }) => [at_ns[0] ?? 0, at_ns.at(-1) ?? 0]);
    return [Math.min(...times), Math.max(...times)];
  }, [series]);
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
