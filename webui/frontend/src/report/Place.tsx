import type { PlaceInCode } from "@/api/models";
import { Name } from "@/parts/Name";
import { formatShare } from "@/units/quantities";

/** A line of the user's code, with how sure the samples are. */
export function Place({ place }: { place: PlaceInCode }) {
  return (
    <span className="place">
      <Name text={`${place.file}:${place.line}`} most={72} code />
      {place.function && (
        <>
          {" in "}
          <Name text={place.function} most={60} code />
        </>
      )}
      {place.of_samples > 0 && <span className="quiet"> ({formatShare(place.samples / place.of_samples)} of its samples)</span>}
    </span>
  );
}
