import { sparkPoints } from "./layout";

const [WIDTH, HEIGHT, MARGIN] = [72, 18, 2.5];

/** The last values of one quantity, the oldest first. `summary` says in words what the line shows. */
export function Sparkline({ values, summary }: { values: readonly (number | null)[]; summary: string }) {
  const points = sparkPoints(values, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN);
  const known = points.filter((point) => point !== null);
  const last = known.at(-1);
  if (!last) return <span className="quiet">–</span>;
  return (
    <svg className="sparkline" width={WIDTH} height={HEIGHT} role="img" aria-label={summary}>
      <title>{summary}</title>
      <g transform={`translate(${MARGIN} ${MARGIN})`}>
        {known.length > 1 && <polyline points={known.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")} />}
        <circle cx={last[0]} cy={last[1]} r="2" />
      </g>
    </svg>
  );
}
