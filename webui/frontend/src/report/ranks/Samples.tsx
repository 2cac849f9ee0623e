// Samples of devices and hosts over one time axis, a chart per quantity.
import { useQuery } from "@tanstack/react-query";
import type { SamplePage, SampleSeries } from "@/api/models";
import { samplesQuery } from "@/api/queries";
import { useWidth } from "@/charts/canvas";
import { type Line, Lines } from "@/charts/Lines";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDate } from "@/units/dates";
import { plural } from "@/units/quantities";
import { sentenceCase, visibleText } from "@/units/text";
import type { ReportView } from "../search";

export function SamplesSection({ view }: { view: ReportView }) {
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
  const [place, width] = useWidth<HTMLDivElement>();
  const times = page.series.flatMap(({ at_ns }) => [at_ns[0] ?? 0, at_ns.at(-1) ?? 0]);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  return (
    <div ref={place}>
      <p className="quiet">
        Seconds after {formatDate(page.origin_unix_ns)}
        {page.ranks_with_samples > 0 && `; devices of ${plural(page.ranks_with_samples, "rank")} were sampled`}
      </p>
      {width > 0 &&
        groupSeries(page.series).map((group) => (
          <figure key={`${group.of} ${group.name}`}>
            <figcaption>
              {sentenceCase(group.name)} <span className="quiet">{group.unit} · {group.of}</span>
            </figcaption>
            <Lines lines={group.series.map((one) => toLine(one, view.search.rank))} from={from} to={to} width={width} title={sentenceCase(group.name)} unit={group.unit} />
          </figure>
        ))}
    </div>
  );
}

function toLine(series: SampleSeries, rank: number | undefined): Line {
  const who = series.of === "host" ? series.host_name : `rank ${series.ranks.join(", ")}`;
  return { name: visibleText(who), at: series.at_ns, values: series.values, strong: rank === undefined || series.ranks.includes(rank) };
}
