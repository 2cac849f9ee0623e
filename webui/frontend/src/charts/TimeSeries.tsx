// One quantity over time for several ranks or hosts, drawn by uPlot: charts of one page share their cursor and their zoom.
import { useEffect } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colorOf } from "@/theme/palette";
import { useTheme } from "@/theme/theme";
import { useWidth } from "./canvas";

export interface Line {
  name: string;
  at_ns: readonly number[];
  values: readonly (number | null)[];
  /** Its place among all lines of the page, so that one rank has one colour in every chart. */
  color: number;
  /** Drawn thicker: the rank that the page is about. */
  strong: boolean;
}

interface Props {
  lines: readonly Line[];
  title: string;
  unit: string;
  /** A value as it is written, with its unit. */
  say: (value: number) => string;
  /** [from, to] in ns: the time axis of all charts of the page. */
  span: readonly [number, number];
  /** Charts of one key share their cursor. */
  group: string;
  height?: number;
}

const COLORS = 8;
/** Round numbers of bytes are round in KiB, MiB or GiB. */
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Drawn anew with the theme, whose colours a canvas keeps. */
export function TimeSeries(props: Props) {
  return <Chart key={useTheme()} {...props} />;
}

function Chart({ lines, title, unit, say, span, group, height = 120 }: Props) {
  const [place, width, element] = useWidth<HTMLDivElement>();
  useEffect(() => {
    if (!element || width < 1) return;
    const chart = new uPlot(optionsOf({ lines, unit, say, group, height, width }), dataOf(lines, span), element);
    return () => chart.destroy();
  }, [element, width, height, lines, unit, say, span, group]);
  const known = lines.flatMap(({ values }) => values.filter((value) => value !== null));
  const range = known.length > 0 ? `from ${say(Math.min(...known))} to ${say(Math.max(...known))}` : "without values";
  return <div ref={place} className="time-series" role="group" aria-label={`${title}, ${unit}: ${lines.map(({ name }) => name).join(", ")}, ${range}`} />;
}

/** Lines over one time axis in seconds that spans [from, to]. A missing sample is a gap; one of another line is none. */
export function dataOf(lines: readonly Line[], [from, to]: readonly [number, number]): uPlot.AlignedData {
  const tables = lines.map(({ at_ns, values }): uPlot.AlignedData => [at_ns.map((at) => at / 1e9), [...values]]);
  const [times, ...columns] = uPlot.join(tables);
  return [[from / 1e9, ...times, to / 1e9], ...columns.map((column) => [null, ...column, null])];
}

function optionsOf({ lines, unit, say, group, height, width }: Required<Omit<Props, "title" | "span">> & { width: number }): uPlot.Options {
  const [text, grid] = [colorOf("--text-quiet"), colorOf("--line-soft")];
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height,
    cursor: { sync: { key: group }, points: { size: 6 }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => `${Number(tick.toFixed(6))} s`) },
      { ...axis, size: 76, space: 26, values: (_, ticks) => ticks.map(say), ...(unit === "bytes" && { incrs: BYTE_STEPS }) },
    ],
    series: [
      { label: "at", value: (_, at) => (at == null ? "–" : `${at.toFixed(2)} s`) },
      ...lines.map((line): uPlot.Series => ({
        label: line.name,
        stroke: colorOf(`--series-${(line.color % COLORS) + 1}`),
        width: line.strong ? 2.5 : 1.25,
        dash: line.color >= COLORS ? [4, 3] : undefined,
        spanGaps: false,
        points: { show: line.values.length < 2 },
        value: (_, value) => (value == null ? "–" : say(value)),
      })),
    ],
  };
}
