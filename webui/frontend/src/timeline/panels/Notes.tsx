/** What a reader must know of the picture: what is missing in it, and what was put right. */

import type { Fleet } from "../format/fleet";
import { plural } from "@/units/quantities";
import { describeCompared } from "../layout/bands";

interface Props {
  fleet: Fleet;
  /** Whether a late rank is to stand beside a typical one. */
  compares: boolean;
  /** Why a part of the view is missing; empty where none is. */
  gap: string;
}

export function Notes({ fleet, compares, gap }: Props) {
  const { ranks } = fleet.header;
  const stagesOnly = ranks.detail.filter((one) => one === "stages").length;
  const partsOnly = fleet.courses.moments.filter((moments) => !moments).length;
  const shifted = ranks.shift_ns.filter(Boolean).length;
  const compared = compares ? describeCompared(fleet.header) : "";
  return (
    <>
      {compared && <p>{compared}</p>}
      {gap && <p>A part is missing: {gap}</p>}
      {shifted > 0 && <p>The clocks of {shifted} ranks are further apart than an iteration is long: they were put right.</p>}
      {partsOnly > 0 && (
        <p>
          {plural(partsOnly, "rank")} of an older analysis: a folded row shows the parts of an iteration side by side, not when they were.
        </p>
      )}
      {stagesOnly > 0 && <p>{stagesOnly} ranks kept their traces: only their iterations are here.</p>}
    </>
  );
}
