// The spread of ranks, measure by measure: a box plot over ranks, with outliers named.
import { useQuery } from "@tanstack/react-query";
import type { IterationSection, RankSlice } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { BoxPlot, type MeasureBox } from "@/charts/BoxPlots";
import { countInBins } from "@/charts/layout";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatMeasure, plural } from "@/units/quantities";
import { measureName } from "@/units/text";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";

const BINS = 32;

/** The measures that have a box plot over ranks. */
export function boxesOf({ tables }: IterationSection): MeasureBox[] {
  return tables.flatMap(({ measure, unit, values, box }) => {
    if (!box) return [];
    const { counts, from, to } = countInBins(values.flat().filter((value) => value !== null), BINS);
    return [{ measure, unit, box, density: counts, density_from: from, density_to: to }];
  });
}

export function SpreadSection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "iterations"));
  const ranks = useQuery(sliceQuery(view.namespace, view.uid, "ranks")).data;
  return (
    <Section id="spread" title="Spread over ranks" note="each rank with the median of its iterations" lazyHeight={240}>
      <Loaded query={query} what="box plots" cut="rank">
        {({ sections }) =>
          sections.every(({ ranks: { length } }) => length < 2) ? (
            <p className="quiet">The box plots need two ranks with iterations.</p>
          ) : (
            sections.map((section) => (
              <DataTable<MeasureBox>
                key={section.kind}
                label={`Spread over ${section.kind === "gpu" ? "GPU" : "CPU-only"} ranks`}
                columns={columns(ranks, view)}
                rows={boxesOf(section)}
                rowKey={(row) => row.measure}
                rowHeight={30}
                minWidth={860}
              />
            ))
          )
        }
      </Loaded>
    </Section>
  );
}

function columns(ranks: RankSlice | undefined, view: ReportView): Column<MeasureBox>[] {
  const valueOf = (measure: string, rank: number) => {
    const index = ranks?.rank.indexOf(rank) ?? -1;
    return index < 0 ? undefined : ranks?.measures[measure]?.[index];
  };
  const points = ({ measure, box }: MeasureBox) =>
    box.outside.flatMap((rank) => {
      const value = valueOf(measure, rank);
      return value == null || value > box.max || value < box.min ? [] : [{ rank, value }];
    });
  return [
    { id: "measure", header: "Measure", width: "220px", cell: ({ measure }) => measureName(measure) },
    { id: "median", header: "Median", width: "90px", numeric: true, cell: ({ box, unit }) => formatMeasure(box.median, unit) },
    { id: "box", header: "Ranks (box), all values (violin), from 0", width: "320px", cell: (row) => <BoxPlot measured={row} width={300} points={points(row)} /> },
    { id: "max", header: "Largest", width: "90px", numeric: true, cell: ({ box, unit }) => formatMeasure(box.max, unit) },
    {
      id: "outside",
      header: "Outliers",
      cell: ({ box }) =>
        box.outside_count === 0 ? (
          <span className="quiet">none</span>
        ) : (
          <span>
            {box.outside.slice(0, 6).map((rank) => (
              <button type="button" key={rank} className="small rank-name" aria-pressed={rank === view.search.rank} onClick={() => view.change({ rank: rank === view.search.rank ? undefined : rank })}>
                {rank}
              </button>
            ))}
            {box.outside_count > 6 && <span className="quiet"> of {plural(box.outside_count, "rank")}</span>}
          </span>
        ),
    },
  ];
}
