// The samples that are drawn, and those that share a chart.
import type { SampleSeries, SampleSlice } from "@/api/models";

const MOST_SHOWN = 8;

/** The series of a rank and of its hosts; without one, those of the first ranks, late ones first, and of their hosts. */
export function chooseSeries({ series }: SampleSlice, rank: number | undefined): SampleSeries[] {
  const devices = series.filter(({ of }) => of === "device");
  const first = [...new Set(devices.map(({ ranks }) => ranks[0]))].slice(0, MOST_SHOWN);
  const shown = new Set(rank === undefined ? first : [rank]);
  const isShown = ({ ranks }: SampleSeries) => ranks.some((one) => shown.has(one));
  const hosts = series.filter((one) => one.of === "host" && (shown.size === 0 || isShown(one)));
  const names = [...new Set(hosts.map(({ host_name: name }) => name))].slice(0, MOST_SHOWN);
  return [...devices.filter(isShown), ...hosts.filter(({ host_name: name }) => names.includes(name))];
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
