// When the ranks reached each stage: a bar from the first to the last of them, on one axis from the request's submission.
import { scaleLinear } from "d3-scale";
import type { StageTimes } from "@/api/models";
import { useWidth } from "@/charts/canvas";
import { axisUnit, formatDuration } from "@/units/durations";
import { plural } from "@/units/quantities";
import { sentenceCase } from "@/units/text";

const [ROW, GUTTER, AXIS] = [22, 84, 18];

export function StageTimeline({ stages }: { stages: readonly StageTimes[] }) {
  const [place, width] = useWidth<HTMLDivElement>();
  const reached = stages.filter((stage) => stage.first_ns !== null && (stage.ranks > 0 || stage.stage === "completed"));
  const end = Math.max(1, ...reached.map(({ last_ns }) => last_ns ?? 0));
  const { unit, size } = axisUnit(end);
  const x = scaleLinear([0, end / size], [GUTTER, Math.max(GUTTER + 1, width - 150)]);
  if (reached.length === 0) return <p className="quiet">No rank was asked yet.</p>;
  return (
    <div ref={place}>
      {width > 0 && (
        <svg width={width} height={reached.length * ROW + AXIS} role="img" className="stages" aria-label={reached.map((stage) => `${stage.stage}: ${say(stage)}`).join("; ")}>
          {x.ticks(6).map((tick) => (
            <g key={tick} transform={`translate(${x(tick)} 0)`}>
              <line y2={reached.length * ROW} className="grid" />
              <text y={reached.length * ROW + 13} className="tick">
                {tick} {unit}
              </text>
            </g>
          ))}
          {reached.map((stage, row) => {
            const [from, to] = [x((stage.first_ns ?? 0) / size), x((stage.last_ns ?? stage.first_ns ?? 0) / size)];
            return (
              <g key={stage.stage} transform={`translate(0 ${row * ROW})`}>
                <text x="0" y={ROW / 2} className="row-name">
                  {sentenceCase(stage.stage)}
                </text>
                <rect x={from - 2} y={6} width={Math.max(4, to - from + 4)} height={ROW - 12} rx="2" fill={stage.stage === "failed" ? "var(--communication)" : "var(--compute)"} />
                <text x={to + 8} y={ROW / 2} className="row-value">
                  {say(stage)}
                </text>
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}

function say({ first_ns: first, last_ns: last, ranks }: StageTimes): string {
  const when = first === last ? formatDuration(first) : `${formatDuration(first)} – ${formatDuration(last)}`;
  return ranks > 0 ? `${when} · ${plural(ranks, "rank")}` : when;
}
