// How far the ranks differ, measure by measure: a box plot over ranks, with outliers named.
import { useQuery } from "@tanstack/react-query";
import type { BoxPage, RankColumns } from "@/api/models";
import { boxesQuery, ranksQuery } from "@/api/queries";
import { BoxPlot } from "@/charts/BoxPlots";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatMeasure, plural } from "@/units/quantities";
import { measureName } from "@/units/text";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";

type MeasureBox = BoxPage["sections"][number]["boxes"][number];

export function SpreadSection({ view }: SectionProps) {
  const query = useQuery(boxesQuery(view.namespace, view.uid));
  const ranks = useQuery(ranksQuery(view.namespace, view.uid)).data;
  return (
    <Section id="spread" title="Spread over ranks" note="each rank with the median of its iterations" lazyHeight={240}>
      <Loaded query={query} what="box plots">
        {({ sections }) =>
          sections.length === 0 ? (
            <p className="quiet">The box plots need two ranks with iterations.</p>
          ) : (
            sections.map((section) => (
              <DataTable<MeasureBox>
                key={section.kind}
                label={`Spread over ${section.kind === "gpu" ? "GPU" : "CPU-only"} ranks`}
                columns={columns(ranks, view)}
                rows={section.boxes}
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

function columns(ranks: RankColumns | undefined, view: ReportView): Column<MeasureBox>[] {
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
