import { figureName, figuresOf, TIME_CLASSES } from "@/theme/classes";
import { fillOf } from "./Patterns";
import { formatDuration } from "@/units/durations";
import { formatPercent } from "@/units/quantities";

/** The classes with their signs: those that any row of `rows` has; with values, how much each is of the whole. */
export function Legend({ values, rows }: { values?: readonly number[]; rows?: readonly (readonly number[])[] }) {
  const whole = values?.reduce((sum, value) => sum + value, 0) ?? 0;
  const shown = values && figuresOf(values);
  return (
    <ul className="legend">
      {TIME_CLASSES.map((entry, index) => {
        const value = shown?.[index];
        if (shown && !value) return null;
        if (rows && !rows.some((parts) => parts[index])) return null;
        return (
          <li key={entry.id} title={entry.explanation}>
            <svg width="14" height="12" aria-hidden="true">
              <rect x="0.5" y="0.5" width="13" height="11" fill={fillOf(entry.id)} stroke={`var(${entry.color})`} />
            </svg>
            {values ? figureName(entry) : entry.name}
            {value !== undefined && whole > 0 && (
              <span className="quiet">
                {" "}
                {formatPercent(value / whole)} · {formatDuration(value)}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
