// A share as a short bar with its number: columns of them are compared at a glance.
import { formatShare } from "@/units/quantities";

export function ShareBar({ share, color, most = 1 }: { share: number | null | undefined; color: string; most?: number }) {
  if (share == null) return <span className="quiet">–</span>;
  return (
    <span className="share">
      <span className="share-number">{formatShare(share)}</span>
      <svg width="40" height="8" aria-hidden="true">
        <rect width="40" height="8" className="share-ground" />
        <rect width={40 * Math.min(1, most > 0 ? share / most : 0)} height="8" fill={`var(${color})`} />
      </svg>
    </span>
  );
}
