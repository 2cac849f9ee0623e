// The last day of a workload between captures, from telemetry: a chart for each of the measures that tell most, and
// above them what alerts and policies did, whose marks go through all charts.
import { useQuery } from "@tanstack/react-query";
import { scaleLinear, type ScaleTime, scaleTime } from "d3-scale";
import type { DaySeries, TelemetryDay } from "@/api/models";
import { dayQuery } from "@/api/queries";
import { useWidth } from "@/charts/canvas";
import { labelTicks, pieces } from "@/charts/layout";
import { Section } from "@/parts/Section";
import { formatTick, unixMillis } from "@/units/dates";
import { formatDuration, threeDigits } from "@/units/durations";
import { formatBytes, formatShare } from "@/units/quantities";
import { DayMarks } from "./DayMarks";
import { type DayMark, marksOf } from "./marks";

const [HEIGHT, LEFT, RIGHT, BOTTOM] = [92, 72, 16, 20];
const DAY_MS = 24 * 3600 * 1000;
const COLORS = ["--series-1", "--series-2", "--series-3"];

export function LastDay({ namespace, kind, name }: { namespace: string; kind: string; name: string }) {
  const query = useQuery(dayQuery(namespace, kind, name));
  return query.data && query.data.series.length > 0 ? <Charts day={query.data} /> : null;
}

function Charts({ day: { end_unix_ns, step_ns, series, actions } }: { day: TelemetryDay }) {
  const [place, width] = useWidth<HTMLDivElement>();
  const end = unixMillis(end_unix_ns) ?? 0;
  const marks = marksOf(actions);
  // What is stored is up to ten minutes older than the latest mark.
  const x = scaleTime([end - DAY_MS, Math.max(end, marks.at(-1)?.at ?? 0)], [LEFT, width - RIGHT]);
  return (
    <Section id="day" title="The last day" note="means over the ranks, every five minutes, without a capture">
      <div ref={place} className="trends">
        {width > 0 && marks.length > 0 && <DayMarks marks={marks} x={x} width={width} left={LEFT} />}
        {width > 0 &&
          series.map((one, index) => (
            <DayChart key={one.measure} series={one} end={end} step={step_ns / 1e6} x={x} width={width} marks={marks} color={COLORS[index % COLORS.length]!} />
          ))}
      </div>
    </Section>
  );
}

interface Props {
  series: DaySeries;
  end: number;
  step: number;
  x: ScaleTime<number, number>;
  width: number;
  marks: readonly DayMark[];
  color: string;
}

function DayChart({ series: { measure, help, values }, end, step, x, width, marks, color }: Props) {
  const at = values.map((_, index) => end - (values.length - index - 0.5) * step);
  const known = values.filter((value) => value !== null);
  const y = scaleLinear([0, Math.max(...known) * 1.05 || 1], [HEIGHT - BOTTOM, 6]);
  const say = sayOf(measure);
  const title = titleOf(measure);
  const range = `${say(Math.min(...known))} to ${say(Math.max(...known))}`;
  return (
    <figure>
      <figcaption>
        {title} <span className="quiet">{help} {range}</span>
      </figcaption>
      <svg width={width} height={HEIGHT} className="lines" role="img" aria-label={`${title} of the last day: ${range}`}>
        {labelTicks(y.ticks(3), say).map(({ tick, label }) => (
          <g key={tick} transform={`translate(0 ${y(tick)})`}>
            <line x1={LEFT} x2={width - RIGHT} className="grid" />
            <text x={LEFT - 6} className="tick-left">
              {label}
            </text>
          </g>
        ))}
        {x.ticks(8).map((tick) => (
          <text key={tick.getTime()} x={x(tick)} y={HEIGHT - 5} className="tick">
            {formatTick(tick, step * values.length)}
          </text>
        ))}
        {marks.map((mark) => (
          <line key={mark.key} x1={x(mark.at)} x2={x(mark.at)} y1={4} y2={HEIGHT - BOTTOM} className={mark.action.action === "captured" ? "day-mark-line captured" : "day-mark-line"} />
        ))}
        <g className="line strong" style={{ stroke: `var(${color})` }}>
          {pieces({ at, values }).map((points) =>
            points.length > 1 ? (
              <polyline key={points[0]![0]} points={points.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join(" ")} />
            ) : (
              <circle key={points[0]![0]} cx={x(points[0]![0])} cy={y(points[0]![1])} r="2" fill={`var(${color})`} />
            ),
          )}
        </g>
      </svg>
    </figure>
  );
}

/** "GPU busy" of gpu_busy_ratio. */
function titleOf(measure: string): string {
  const words = measure.replace(/_(ratio|seconds|bytes|watts|joules)$/, "").replaceAll("_", " ").replace("gpu", "GPU").replace("sm ", "SM ").replace("cpu", "CPU");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** How a value of a measure is written: the measure's name ends with its unit. */
function sayOf(measure: string): (value: number) => string {
  if (measure.endsWith("_ratio")) return formatShare;
  if (measure.endsWith("_bytes")) return formatBytes;
  if (measure.endsWith("_per_second")) return (value) => `${threeDigits(value)}/s`;
  if (measure.endsWith("_seconds")) return (value) => formatDuration(value * 1e9);
  if (measure.endsWith("_watts")) return (value) => `${threeDigits(value)} W`;
  return (value) => `${threeDigits(value)} J`;
}
