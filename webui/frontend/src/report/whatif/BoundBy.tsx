// What an iteration consists of, now and under the changes: two bars over one scale.
import { formatDuration } from "@/units/durations";
import { formatShare } from "@/units/quantities";

export const PARTS = [
  ["compute", "Compute", "--compute"],
  ["communication", "Communication", "--communication"],
  ["copies", "Copies", "--memory"],
  ["host", "Host", "--host"],
  ["waits", "Waits", "--idle"],
] as const;

export interface BoundBar {
  name: string;
  iterationNs: number;
  /** Shares by part; null: not known. */
  shares: Readonly<Record<string, number>> | null;
}

export function BoundBy({ bars }: { bars: readonly BoundBar[] }) {
  const longest = Math.max(...bars.map(({ iterationNs }) => iterationNs));
  return (
    <figure className="bound-by">
      <figcaption className="quiet">What bounds an iteration, along what waits for what</figcaption>
      {bars.map(({ name, iterationNs, shares }) => {
        const words = shares ? PARTS.filter(([key]) => (shares[key] ?? 0) >= 0.005).map(([key, title]) => `${title} ${formatShare(shares[key])}`).join(", ") : "not known for these changes together";
        const known = PARTS.map(([key, title, color], at) => ({ key, title, color, share: shares?.[key] ?? 0, before: PARTS.slice(0, at).reduce((sum, [one]) => sum + (shares?.[one] ?? 0), 0) }));
        return (
          <div key={name} className="bound-by-row">
            <span>{name}</span>
            <svg role="img" aria-label={`${name}: ${words}`} viewBox="0 0 1000 18" preserveAspectRatio="none">
              <rect width={(iterationNs / longest) * 1000} height="18" className="share-ground" />
              {known.map(({ key, title, color, share, before }) => (
                <rect key={key} x={(before * iterationNs * 1000) / longest} width={(share * iterationNs * 1000) / longest} height="18" fill={`var(${color})`}>
                  <title>{`${title}: ${formatShare(share)}`}</title>
                </rect>
              ))}
            </svg>
            <span className="numeric">{formatDuration(iterationNs)}</span>
            <span className="quiet bound-by-words">{words}</span>
          </div>
        );
      })}
    </figure>
  );
}
