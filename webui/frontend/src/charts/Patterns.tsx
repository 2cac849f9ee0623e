// The second signs of the classes as SVG patterns, once per page: fill="url(#sign-…)".
import { TIME_CLASSES } from "@/theme/classes";

export function Patterns() {
  return (
    <svg width="0" height="0" className="patterns" aria-hidden="true">
      <defs>
        {TIME_CLASSES.map(({ id, color, sign }) => (
          <pattern key={id} id={`sign-${id}`} width="6" height="6" patternUnits="userSpaceOnUse">
            <rect width="6" height="6" fill={sign === "hollow" ? "var(--background)" : `var(${color})`} />
            {sign === "hatch" && <path d="M-1 1L1-1M0 6L6 0M5 7L7 5" stroke="var(--communication)" strokeWidth="2" />}
            {sign === "lines" && <path d="M3 0V6" stroke="var(--background)" strokeWidth="1" />}
            {sign === "dots" && <circle cx="3" cy="3" r="1" fill="var(--background)" />}
            {sign === "edge" && <path d="M0 0" />}
            {sign === "hollow" && <path d="M0 6L6 0" stroke={`var(${color})`} strokeWidth="1" />}
          </pattern>
        ))}
      </defs>
    </svg>
  );
}

export const fillOf = (id: string) => `url(#sign-${id})`;
