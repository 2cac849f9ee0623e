import { TIME_CLASSES } from "@/theme/classes";
import { fillOf } from "./Patterns";
import { formatDuration } from "@/units/durations";
import { formatShare } from "@/units/quantities";

/** The classes with their signs; with values, how much each is of the whole. */
export function Legend({ values }: { values?: readonly number[] }) {
  const whole = values?.reduce((sum, value) => sum + value, 0) ?? 0;
  return (
    <ul className="legend">
      {TIME_CLASSES.map((entry, index) => {
        const value = values?.[index];
        if (values && !value) return null;
        return (
          <li key={entry.id} title={entry.explanation}>
            <svg width="14" height="12" aria-hidden="true">
              <rect x="0.5" y="0.5" width="13" height="11" fill={fillOf(entry.id)} stroke={`var(${entry.color})`} />
            </svg>
            {entry.name}
            {value !== undefined && whole > 0 && (
              <span className="quiet">
                {" "}
                {formatShare(value / whole)} · {formatDuration(value)}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
