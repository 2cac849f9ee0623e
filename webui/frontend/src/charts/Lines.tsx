// One quantity over time for several ranks or hosts, on a time axis that charts below each other share.
import { scaleLinear } from "d3-scale";
import { threeDigits } from "@/units/durations";
import { formatBytes } from "@/units/quantities";
import { labelTicks, pieces } from "./layout";

export interface Line {
  name: string;
  at: readonly number[];
  values: readonly (number | null)[];
  strong: boolean;
}

const [HEIGHT, LEFT, RIGHT, BOTTOM] = [92, 64, 12, 18];

interface Props {
  lines: readonly Line[];
  from: number;
  to: number;
  width: number;
  title: string;
  unit: string;
}

export function Lines({ lines, from, to, width, title, unit }: Props) {
  const known = lines.flatMap(({ values }) => values.filter((value): value is number => value !== null));
  const [low, high] = [Math.min(0, ...known), Math.max(...known, 0)];
  const x = scaleLinear([from / 1e9, Math.max(to, from + 1) / 1e9], [LEFT, width - RIGHT]);
  const y = scaleLinear([low, high > low ? high : low + 1], [HEIGHT - BOTTOM, 6]).nice(3);
  const say = (tick: number) => (unit.startsWith("bytes") ? formatBytes(tick) : tick.toLocaleString("en-US", { notation: "compact" }));
  const summary = `${title}: ${lines.length} lines from ${threeDigits(Math.min(...known))} to ${threeDigits(high)} ${unit}`;
  return (
    <svg width={width} height={HEIGHT} className="lines" role="img" aria-label={summary}>
      {labelTicks(y.ticks(3), say).map(({ tick, label }) => (
        <g key={tick} transform={`translate(0 ${y(tick)})`}>
          <line x1={LEFT} x2={width - RIGHT} className="grid" />
          <text x={LEFT - 6} className="tick-left">
            {label}
          </text>
        </g>
      ))}
      {x.ticks(8).map((tick) => (
        <text key={tick} x={x(tick)} y={HEIGHT - 4} className="tick">
          {tick} s
        </text>
      ))}
      {lines.map((line) => (
        <g key={line.name} className={line.strong ? "line strong" : "line"}>
          <title>{line.name}</title>
          {pieces(line).map((points) => (
            <polyline key={points[0]?.[0]} points={points.map(([at, value]) => `${x(at / 1e9).toFixed(1)},${y(value).toFixed(1)}`).join(" ")} />
          ))}
        </g>
      ))}
    </svg>
  );
}
