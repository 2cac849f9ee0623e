// Any measure over ranks and iterations: the picture in which a late rank is a line and a slow iteration a column.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { IterationSection } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { HeatMap } from "@/charts/HeatMap";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatMeasure, plural } from "@/units/quantities";
import { measureName } from "@/units/text";
import { firstMeasures } from "./firstMeasures";
import { rankName } from "./rankRows";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";

export function IterationsSection({ report: { stragglers }, view }: SectionProps) {
  const cause = stragglers?.named[0]?.cause ?? stragglers?.cause ?? undefined;
  // All measures at once: 12 of them over 1,000 ranks and 5 iterations are 0.2 MB, and a change of measure is immediate.
  const query = useQuery(sliceQuery(view.namespace, view.uid, "iterations"));
  return (
    <Section id="iterations" title="Ranks and iterations" lazyHeight={420}>
      <Loaded query={query} what="iterations" cut="rank">
        {({ sections }) =>
          sections.length === 0 ? (
            <Empty title="No iterations to put side by side">
              <p>The chart needs two ranks or more whose traces hold marks of iterations.</p>
            </Empty>
          ) : (
            sections.map((section) => <OneKind key={section.kind} section={section} view={view} cause={cause} />)
          )
        }
      </Loaded>
    </Section>
  );
}

function OneKind({ section, view, cause }: { section: IterationSection; view: ReportView; cause: string | undefined }) {
  const [asTable, setAsTable] = useState(false);
  const names = section.tables.map(({ measure }) => measure);
  const parameter = view.search.measure;
  const chosen = parameter !== undefined && names.includes(parameter) ? parameter : (firstMeasures(cause).find((name) => names.includes(name)) ?? names[0]);
  const table = section.tables.find(({ measure }) => measure === chosen);
  if (!table) return null;
  const iteration = (index: number) => String(section.iterations[index] ?? "");
  const rank = (index: number) => rankName(section.ranks[index] ?? null);
  const ranksAlong = section.ranks.length > section.iterations.length;
  const values = ranksAlong ? section.iterations.map((_, column) => table.values.map((row) => row[column] ?? null)) : table.values;
  const select = (row: number, column: number) => {
    const found = section.ranks[ranksAlong ? column : row];
    view.change({ rank: found ?? undefined });
  };
  return (
    <>
      <div className="row">
        <label>
          Measure{" "}
          <select value={chosen} onChange={(event) => view.change({ measure: event.target.value })}>
            {names.map((name) => (
              <option key={name} value={name}>
                {measureName(name)}
              </option>
            ))}
          </select>
        </label>
        <span className="quiet">
          {ranksAlong ? "ranks along the page, iterations down it" : "iterations along the page, ranks down it"}
          {section.recorded > section.iterations.length && `; ${section.iterations.length} of ${plural(section.recorded, "iteration")}`}
          {section.iterations_by === "position" && "; iterations are counted from the first of each trace"}
        </span>
        <label>
          <input type="checkbox" checked={asTable} onChange={(event) => setAsTable(event.target.checked)} /> as a table
        </label>
      </div>
      {asTable ? (
        <DataTable<number>
          label={`${measureName(table.measure)} by rank and iteration`}
          columns={[
            { id: "rank", header: "Rank", width: "72px", numeric: true, cell: (row) => rank(row) },
            ...section.iterations.map<Column<number>>((index, column) => ({
              id: String(index),
              header: String(index),
              width: "88px",
              numeric: true,
              cell: (row) => formatMeasure(table.values[row]?.[column], table.unit),
            })),
          ]}
          rows={section.ranks.map((_, row) => row)}
          rowKey={(row) => row}
          minWidth={72 + 88 * section.iterations.length}
        />
      ) : (
        <HeatMap
          values={values}
          unit={table.unit}
          rowsAre={ranksAlong ? "iteration" : "rank"}
          rowName={ranksAlong ? iteration : rank}
          columnName={ranksAlong ? rank : iteration}
          label={`${measureName(table.measure)} of ${plural(section.ranks.length, "rank")} in ${plural(section.iterations.length, "iteration")}`}
          onSelect={select}
        />
      )}
    </>
  );
}
