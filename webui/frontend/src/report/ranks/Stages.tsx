// The stages of the training loop by rank, as stacked bars of the main thread's time.
import { useQuery } from "@tanstack/react-query";
import type { RankSlice, Slices } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatShare } from "@/units/quantities";
import { STAGE_CLASSES } from "@/theme/classes";
import { sentenceCase } from "@/units/text";
import { Place } from "../Place";
import { rankName } from "./rankRows";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";

const ORDER = ["data_loading", "forward", "loss", "backward", "zero_grad", "optimizer", "host", "other"];

/** The stages that ranks have, in the order of the loop. */
export function stagesOf(columns: RankSlice): string[] {
  return ORDER.filter((stage) => columns.measures[`stage_${stage}`]?.some((value) => value));
}

export function StagesSection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "ranks"));
  const totals = useQuery(sliceQuery(view.namespace, view.uid, "stages"));
  return (
    <Section id="stages" title="Stages" note="time of the main thread, over the recorded iterations" lazyHeight={200}>
      <Loaded query={query} what="stages" cut="place">
        {(columns) => <Body columns={columns} view={view} />}
      </Loaded>
      {totals.data && <Totals slice={totals.data} />}
    </Section>
  );
}

/** All ranks together, with the device work that each stage launched; and where the host ran no operator. */
function Totals({ slice: { stages, silences } }: { slice: Slices["stages"] }) {
  const whole = stages.reduce((sum, { time_ns: time }) => sum + time, 0);
  if (whole === 0) return null;
  return (
    <>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">All ranks</th>
            <th scope="col" className="numeric">Share</th>
            <th scope="col" className="numeric">Main thread</th>
            <th scope="col" className="numeric">Device work launched in it</th>
          </tr>
        </thead>
        <tbody>
          {stages.map(({ stage, time_ns: time, device_ns: device }) => (
            <tr key={stage}>
              <th scope="row">{sentenceCase(stage)}</th>
              <td className="numeric">{formatShare(time / whole)}</td>
              <td className="numeric">{formatDuration(time)}</td>
              <td className="numeric">{device > 0 ? formatDuration(device) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {silences.length > 0 && (
        <ul>
          {silences.map(({ words, time_ns: time, place }) => (
            <li key={words}>
              No operator <Name text={words} most={200} />, {formatDuration(time)} {place && <Place place={place} />}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Body({ columns, view }: { columns: RankSlice; view: ReportView }) {
  const stages = stagesOf(columns);
  if (stages.length === 0) return <p className="quiet">No stages: the traces have no iterations with marks of forward, backward or optimizer.</p>;
  const value = (stage: string, row: number) => columns.measures[`stage_${stage}`]?.[row] ?? 0;
  const whole = (row: number) => stages.reduce((sum, stage) => sum + value(stage, row), 0);
  const shown: Column<number>[] = [
    { id: "rank", header: "Rank", width: "72px", numeric: true, cell: (row) => rankName(columns.rank[row] ?? null) },
    { id: "whole", header: "All", width: "92px", numeric: true, cell: (row) => formatDuration(whole(row)) },
    ...stages.map<Column<number>>((stage) => ({
      id: stage,
      header: sentenceCase(stage),
      width: "128px",
      numeric: true,
      cell: (row) => {
        const ns = value(stage, row);
        const share = whole(row) > 0 ? ns / whole(row) : 0;
        return (
          <span className="share" title={formatDuration(ns)}>
            <span className="share-number">{formatShare(share)}</span>
            <svg width="48" height="8" aria-hidden="true">
              <rect width="48" height="8" className="share-ground" />
              <rect width={48 * share} height="8" fill={`var(--${(STAGE_CLASSES[stage] ?? "idle").replace("_", "-")})`} />
            </svg>
          </span>
        );
      },
    })),
  ];
  return (
    <DataTable<number>
      label="Stages by rank"
      columns={shown}
      rows={columns.rank.map((_, row) => row)}
      rowKey={(row) => row}
      mostHeight={420}
      minWidth={164 + stages.length * 128}
      isSelected={(row) => columns.rank[row] !== null && columns.rank[row] === view.search.rank}
      onSelect={(row) => view.change({ rank: columns.rank[row] ?? undefined })}
    />
  );
}
