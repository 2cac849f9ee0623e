// Each rank's time as a stacked bar: a skyline of all where they are many, and a list that scrolls through a thousand.
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import type { RankSlice } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { useWidth } from "@/charts/canvas";
import { Legend } from "@/charts/Legend";
import { Skyline } from "@/charts/Skyline";
import { describeParts, StackedRow } from "@/charts/StackedRow";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatMeasure, plural } from "@/units/quantities";
import { measureName } from "@/units/text";
import { type Column, DataTable } from "@/parts/DataTable";
import { HostLink } from "@/parts/HostLink";
import { sortRows } from "@/parts/sorting";
import { orderRows, rankName, type RankRow, rankRows } from "./rankRows";
import type { ReportSearch, ReportView } from "../search";
import type { SectionProps } from "../sections";

const ORDERS: readonly [NonNullable<ReportSearch["ranks"]>, string][] = [
  ["rank", "by number"],
  ["lateness", "latest first"],
  ["span", "longest first"],
  ["idle", "most idle first"],
  ["compute", "most compute first"],
  ["exposed_communication", "most exposed communication first"],
];
const SKYLINE_FROM = 32;

export function RanksSection({ report, view }: SectionProps) {
  const late = report.stragglers?.named.map(({ rank }) => rank) ?? [];
  const query = useQuery(sliceQuery(view.namespace, view.uid, "ranks"));
  const order = view.search.ranks ?? "rank";
  const orders = ORDERS.filter(([id]) => id === "rank" || query.data?.measures[id]);
  return (
    <Section
      id="ranks"
      title="Time by rank"
      note={query.data && plural(query.data.rank.length, "rank")}
      lazyHeight={300}
      tools={
        <select aria-label="Order of ranks" value={order} onChange={(event) => view.change({ ranks: event.target.value as ReportSearch["ranks"] })}>
          {orders.map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      }
    >
      <Loaded query={query} what="the ranks" cut="rank">
        {(columns) => <Bars columns={columns} order={order} view={view} late={late} />}
      </Loaded>
    </Section>
  );
}

function Bars({ columns, order, view, late }: { columns: RankSlice; order: string; view: ReportView; late: readonly number[] }) {
  const rows = useMemo(() => orderRows(rankRows(columns), columns, order), [columns, order]);
  const parts = useMemo(() => rows.map((row) => row.parts), [rows]);
  const found = rows.findIndex(({ rank }) => rank !== null && rank === view.search.rank);
  const selected = found === -1 ? undefined : found;
  const describe = (index: number) => {
    const row = rows[index];
    return row ? `rank ${rankName(row.rank)}: ${formatDuration(row.span)}; ${describeParts(row.parts)}` : "";
  };
  const onSelect = (index: number) => {
    const rank = rows[index]?.rank;
    view.change({ rank: rank === null || rank === view.search.rank ? undefined : rank });
  };
  return (
    <>
      <Legend rows={parts} />
      {rows.length >= SKYLINE_FROM && (
        <Skyline rows={parts} label={`Time of ${plural(rows.length, "rank")}, a column each`} selected={selected} describe={describe} onSelect={onSelect} />
      )}
      <BarList rows={rows} late={late} selected={selected} onSelect={onSelect} />
      <details>
        <summary>As a table, with all measures</summary>
        <MeasureTable columns={columns} rows={rows} view={view} />
      </details>
    </>
  );
}

const ROW_HEIGHT = 24;

function BarList({ rows, late, selected, onSelect }: { rows: readonly RankRow[]; late: readonly number[]; selected: number | undefined; onSelect: (index: number) => void }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [place, width] = useWidth<HTMLDivElement>();
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_HEIGHT, overscan: 10 });
  useEffect(() => {
    if (selected !== undefined) virtual.scrollToIndex(selected, { align: "auto" });
  }, [selected, virtual]);
  const longest = Math.max(1, ...rows.map(({ span }) => span));
  const bar = Math.max(0, width - 300);
  return (
    <div ref={scroller} className="bar-list" tabIndex={0} role="region" aria-label="Time by rank">
      <div ref={place} style={{ height: virtual.getTotalSize() }} role="list">
        {width > 0 &&
          virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index];
            return (
              row && (
                <div key={index} role="listitem" className="bar-row" style={{ top: start, height: ROW_HEIGHT }} data-selected={index === selected || undefined}>
                  <button type="button" className="bar-name" aria-pressed={index === selected} onClick={() => onSelect(index)}>
                    rank {rankName(row.rank)}
                  </button>
                  <span className="bar-host quiet">
                    {row.rank !== null && late.includes(row.rank) && <strong className="bad">▲ late </strong>}
                    {row.host && <HostLink host={row.host} most={14} />}
                  </span>
                  <StackedRow parts={row.parts} longest={longest} width={bar} height={16} />
                  <span className="bar-value">{formatDuration(row.span)}</span>
                </div>
              )
            );
          })}
      </div>
    </div>
  );
}

function MeasureTable({ columns, rows, view }: { columns: RankSlice; rows: readonly RankRow[]; view: ReportView }) {
  const [sort, setSort] = useState("rank");
  const names = Object.keys(columns.measures);
  const value = (row: RankRow, id: string) => (id === "rank" ? row.rank : id === "host" ? row.host : columns.measures[id]?.[row.index]);
  const shown: Column<RankRow>[] = [
    { id: "rank", header: "Rank", width: "64px", numeric: true, sortable: true, cell: (row) => rankName(row.rank) },
    { id: "host", header: "Host", width: "120px", sortable: true, cell: (row) => <HostLink host={row.host} most={16} /> },
    ...names.map((name) => ({
      id: name,
      header: measureName(name),
      width: "110px",
      numeric: true,
      sortable: true,
      cell: (row: RankRow) => formatMeasure(columns.measures[name]?.[row.index], columns.units[name] ?? ""),
    })),
  ];
  return (
    <DataTable<RankRow>
      label="All measures by rank"
      columns={shown}
      rows={sortRows(rows, sort, value)}
      rowKey={(row) => row.index}
      sort={sort}
      onSort={setSort}
      minWidth={184 + names.length * 110}
      isSelected={(row) => row.rank !== null && row.rank === view.search.rank}
      onSelect={(row) => view.change({ rank: row.rank ?? undefined })}
    />
  );
}
