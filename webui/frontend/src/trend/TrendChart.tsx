// One figure over the reports of a workload, in time.
import { scaleLinear, scaleTime } from "d3-scale";
import type { Capture, Figures } from "@/api/models";
import { labelTicks } from "@/charts/layout";
import { formatMillis, formatTick, unixMillis } from "@/units/dates";

interface Props {
  title: string;
  captures: readonly Capture[];
  width: number;
  value: (figures: Figures) => number | null;
  say: (value: number) => string;
  color: string;
  onOpen: (capture: Capture) => void;
}

const [HEIGHT, LEFT, RIGHT, BOTTOM] = [120, 72, 16, 20];

export function TrendChart({ title, captures, width, value, say, color, onOpen }: Props) {
  const points = captures.flatMap((capture) => {
    const found = capture.figures && value(capture.figures);
    const at = unixMillis(capture.submitted_unix_ns);
    return found != null && at !== null ? [{ capture, at, value: found }] : [];
  });
  if (points.length === 0) return null;
  const times = points.map(({ at }) => at);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const x = scaleTime([from, to > from ? to : from + 1], [LEFT, width - RIGHT]);
  const y = scaleLinear([0, Math.max(1, ...points.map((point) => point.value)) * 1.05], [HEIGHT - BOTTOM, 8]);
  const last = points.at(-1);
  return (
    <figure>
      <figcaption>
        {title} <span className="quiet">{last && `last ${say(last.value)}`}</span>
      </figcaption>
      <svg width={width} height={HEIGHT} className="lines" role="group" aria-label={`${title} of ${points.length} reports`}>
        {labelTicks(y.ticks(3), say).map(({ tick, label }) => (
          <g key={tick} transform={`translate(0 ${y(tick)})`}>
            <line x1={LEFT} x2={width - RIGHT} className="grid" />
            <text x={LEFT - 6} className="tick-left">
              {label}
            </text>
          </g>
        ))}
        {to > from &&
          x.ticks(6).map((tick) => (
            <text key={tick.getTime()} x={x(tick)} y={HEIGHT - 5} className="tick">
              {formatTick(tick, to - from)}
            </text>
          ))}
        <g className="line strong" style={{ stroke: `var(${color})` }}>
          <polyline points={points.map((point) => `${x(point.at).toFixed(1)},${y(point.value).toFixed(1)}`).join(" ")} />
        </g>
        {points.map((point) => (
          // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role -- SVG has no button
          <circle
            key={point.capture.uid}
            cx={x(point.at)}
            cy={y(point.value)}
            r="4"
            fill={`var(${color})`}
            className="point"
            role="button"
            tabIndex={0}
            aria-label={`${title} ${say(point.value)}, report of ${formatMillis(point.at)}`}
            onClick={() => onOpen(point.capture)}
            onKeyDown={(event) => event.key === "Enter" && onOpen(point.capture)}
          >
            <title>{`${say(point.value)} · ${formatMillis(point.at)}`}</title>
          </circle>
        ))}
      </svg>
    </figure>
  );
}
