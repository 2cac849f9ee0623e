// A comparison as a picture: where an iteration's time went before and after, and how its iterations spread, on one scale.
import { useQuery } from "@tanstack/react-query";
import type { Diff } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { BoxPlot } from "@/charts/BoxPlots";
import { useWidth } from "@/charts/canvas";
import { Legend } from "@/charts/Legend";
import { StackedRow } from "@/charts/StackedRow";
import { Section } from "@/parts/Section";
import { partsOf } from "@/theme/classes";
import { formatDuration } from "@/units/durations";
import { boxOf } from "./box";

const SIDES = ["before", "after"] as const;
const [NAME, VALUE] = [60, 80];

/** `before` and `after`: NAMESPACE/UID of the reports. */
export function DiffPicture({ diff, before, after }: { diff: Diff; before: string; after: string }) {
  const [place, width] = useWidth<HTMLDivElement>();
  const measures = new Map((diff.measures ?? []).map((one) => [one.measure, one]));
  const parts = SIDES.map((side) => partsOf((name) => measures.get(name)?.[side]));
  const sums = parts.map((one) => one.reduce((sum, part) => sum + part, 0));
  const iterations = [useIterations(before), useIterations(after)];
  const boxes = iterations.map((values) => (values && values.length > 1 ? boxOf(values) : undefined));
  const known = iterations.flatMap((values) => values ?? []);
  const scale = [Math.min(...known), Math.max(...known)] as const;
  const bar = Math.max(0, width - NAME - VALUE);
  return (
    <Section id="picture" title="Where an iteration's time went" note="mean over iterations and ranks; both on one scale">
      <div ref={place} className="diff-picture">
        {width > 0 &&
          SIDES.map((side, at) => (
            <div key={side} className="diff-side">
              <span>{side === "before" ? "Before" : "After"}</span>
              <StackedRow parts={parts[at]!} longest={Math.max(...sums, 1)} width={bar} height={22} />
              <span className="numeric">{formatDuration(sums[at])}</span>
            </div>
          ))}
        <Legend rows={parts} />
        {width > 0 && boxes.every(Boolean) && (
          <>
            <h3>Iterations</h3>
            {SIDES.map((side, at) => (
              <div key={side} className="diff-side">
                <span>{side === "before" ? "Before" : "After"}</span>
                <BoxPlot measured={{ measure: "iteration", unit: "ns", box: boxes[at]!, density: [], density_from: 0, density_to: 0 }} width={bar} points={[]} scale={scale} />
                <span className="numeric">{formatDuration(boxes[at]!.median)}</span>
              </div>
            ))}
            <p className="quiet">
              From {formatDuration(scale[0])} to {formatDuration(scale[1])}: boxes hold the middle half of the iterations, lines the rest; medians at the right.
            </p>
          </>
        )}
      </div>
    </Section>
  );
}

function useIterations(reference: string): readonly number[] | undefined {
  const [namespace = "", uid = ""] = reference.split("/");
  return useQuery({ ...sliceQuery(namespace, uid, "whatif"), retry: false }).data?.iteration_ns;
}
