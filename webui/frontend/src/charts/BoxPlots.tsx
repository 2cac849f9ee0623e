// A box plot, on a scale of its own from 0 or on one that several share; behind it a violin of all values.
import { scaleLinear } from "d3-scale";
import type { Box } from "@/api/models";
import { formatMeasure } from "@/units/quantities";
import { violinOf } from "./layout";

const [HEIGHT, MIDDLE] = [26, 13];

/** A box plot of one measure; behind it the counts of all values in equal bins from `density_from` to `density_to`. */
export interface MeasureBox {
  measure: string;
  unit: string;
  box: Box;
  density: readonly number[];
  density_from: number;
  density_to: number;
}

interface Props {
  measured: MeasureBox;
  width: number;
  points: readonly { rank: number; value: number }[];
  /** Its limits; without it from 0, or from a lower value, to the largest. */
  scale?: readonly [number, number];
}

export function BoxPlot({ measured, width, points, scale }: Props) {
  const { box, unit, density, density_from: low, density_to: high } = measured;
  const x = scaleLinear(scale ?? [Math.min(0, box.min, low), Math.max(box.max, high) || 1], [4, width - 4]);
  const format = (value: number) => formatMeasure(value, unit);
  const summary = `min ${format(box.min)}, quartiles ${format(box.q1)}, ${format(box.median)}, ${format(box.q3)}, max ${format(box.max)}`;
  return (
    <svg width={width} height={HEIGHT} className="box-plot" role="img" aria-label={summary}>
      <title>{summary}</title>
      {high > low && density.filter((count) => count > 0).length > 1 && <path className="violin" d={violinOf(density, MIDDLE).map(([at, y]) => [x(low + at * (high - low)), y]).reduce((line, [px = 0, py = 0], index) => `${line}${index === 0 ? "M" : "L"}${px.toFixed(1)} ${py.toFixed(1)}`, "")} />}
      <line x1={x(box.low_whisker)} x2={x(box.high_whisker)} y1={MIDDLE} y2={MIDDLE} />
      {[box.low_whisker, box.high_whisker].map((end, index) => (
        // oxlint-disable-next-line react/no-array-index-key
        <line key={index} x1={x(end)} x2={x(end)} y1={MIDDLE - 4} y2={MIDDLE + 4} />
      ))}
      <rect x={x(box.q1)} y={MIDDLE - 6} width={Math.max(1, x(box.q3) - x(box.q1))} height={12} />
      <line className="median" x1={x(box.median)} x2={x(box.median)} y1={MIDDLE - 7} y2={MIDDLE + 7} />
      {points.map(({ rank, value }) => (
        <circle key={rank} cx={x(value)} cy={MIDDLE} r="3">
          <title>{`rank ${rank}: ${format(value)}`}</title>
        </circle>
      ))}
    </svg>
  );
}
