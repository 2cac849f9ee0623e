// One row of stacked parts as SVG: a total, or one rank in a list.
import { figuresOf, TIME_CLASSES } from "@/theme/classes";
import { formatDuration } from "@/units/durations";
import { formatPercent } from "@/units/quantities";
import { fillOf } from "./Patterns";

interface Props {
  parts: readonly number[];
  /** What the full width stands for, ns. */
  longest: number;
  width: number;
  height: number;
}

export function StackedRow({ parts, longest, width, height }: Props) {
  const whole = parts.reduce((sum, part) => sum + part, 0);
  const starts = parts.map((_, index) => parts.slice(0, index).reduce((sum, part) => sum + part, 0));
  return (
    <svg width={width} height={height} className="stacked-row" role="img" aria-label={describeParts(parts)}>
      {parts.map((value, index) => {
        const entry = TIME_CLASSES[index];
        if (!entry || value <= 0) return null;
        const [x, wide] = [((starts[index] ?? 0) / longest) * width, (value / longest) * width];
        return (
          <g key={entry.id}>
            <title>{`${index === 0 && parts[1] ? "Compute alone" : entry.name}: ${formatDuration(value)}, ${formatPercent(value / whole)}`}</title>
            <rect x={x} y={0} width={Math.max(wide, 0.5)} height={height} fill={fillOf(entry.id)} />
            {entry.sign === "edge" && <rect x={x} y={0} width={Math.max(wide, 0.5)} height={2} className="edge" />}
            {entry.letter && wide > 14 && (
              <text x={x + wide / 2} y={height / 2} className={`sign-letter sign-letter-${entry.letter}`}>
                {entry.letter}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** The parts in words, the largest first. */
export function describeParts(parts: readonly number[]): string {
  const whole = parts.reduce((sum, part) => sum + part, 0);
  if (whole <= 0) return "nothing recorded";
  const beside = parts[1] ?? 0;
  return figuresOf(parts)
    .map((value, index) => ({ value, index, name: TIME_CLASSES[index]?.name ?? "" }))
    .filter(({ value, index }) => value > 0 && index !== 1)
    .toSorted((a, b) => b.value - a.value)
    .map(({ value, index, name }) => `${name} ${formatPercent(value / whole)}${index === 0 && beside > 0 ? ` (${formatPercent(beside / whole)} beside communication)` : ""}`)
    .join(", ");
}
