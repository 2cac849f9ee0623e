// Collectives by process group: how long, how much of it hidden behind compute, how fast.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { CommunicationRow } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { sortRows } from "@/parts/sorting";
import { formatDuration } from "@/units/durations";
import { formatBytes, formatCount, formatRate } from "@/units/quantities";
import { sentenceCase } from "@/units/text";
import type { SectionProps } from "../sections";

export function CommunicationSection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "communication"));
  return (
    <Section id="communication" title="Communication" note="by process group, kind and size; all ranks" lazyHeight={200}>
      <Loaded query={query} what="communication" cut="row">
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No collectives in these traces" />
          ) : (
            <Body items={items} />
          )
        }
      </Loaded>
    </Section>
  );
}

const SOMETIMES: ReadonlySet<string> = new Set(["message_bytes", "data_type", "bus_bytes_per_s", "best_bus_bytes_per_s"]);

function Body({ items }: { items: readonly CommunicationRow[] }) {
  const [sort, setSort] = useState("-total_ns");
  const shown: Column<CommunicationRow>[] = [
    { id: "group", header: "Process group", width: "160px", sortable: true, cell: (row) => <><Name text={row.group || "not named"} most={22} />{row.group_size !== null && <span className="quiet"> · {row.group_size} ranks</span>}</> },
    { id: "kind", header: "Collective", width: "120px", sortable: true, cell: (row) => sentenceCase(row.kind) },
    { id: "message_bytes", header: "Size", width: "96px", numeric: true, sortable: true, cell: (row) => formatBytes(row.message_bytes) },
    { id: "data_type", header: "Type", width: "84px", cell: (row) => <Name text={row.data_type || "–"} most={12} /> },
    { id: "count", header: "Calls", width: "80px", numeric: true, sortable: true, cell: (row) => formatCount(row.count) },
    { id: "total_ns", header: "Total", width: "92px", numeric: true, sortable: true, explanation: "waiting for other ranks included", cell: (row) => formatDuration(row.total_ns) },
    { id: "overlapped_ns", header: "Overlapped", width: "122px", numeric: true, sortable: true, explanation: "while compute ran on the same device", cell: (row) => <ShareBar share={row.total_ns > 0 ? row.overlapped_ns / row.total_ns : null} color="--compute" /> },
    { id: "mean", header: "Mean", width: "88px", numeric: true, cell: (row) => formatDuration(row.count > 0 ? row.total_ns / row.count : null) },
    { id: "min_ns", header: "Shortest", width: "88px", numeric: true, sortable: true, explanation: "the call that waited least", cell: (row) => formatDuration(row.min_ns) },
    { id: "bus_bytes_per_s", header: "Bus bandwidth", width: "124px", numeric: true, sortable: true, cell: (row) => formatRate(row.bus_bytes_per_s) },
    { id: "best_bus_bytes_per_s", header: "Best bandwidth", width: "136px", numeric: true, sortable: true, explanation: "bus bandwidth of the shortest call", cell: (row) => formatRate(row.best_bus_bytes_per_s) },
  ];
  // What no row knows is no column: a CPU-only backend says neither sizes nor types.
  const known = shown.filter(({ id }) => !SOMETIMES.has(id) || items.some((row) => row[id as keyof CommunicationRow]));
  const value = (row: CommunicationRow, id: string) => row[id as keyof CommunicationRow];
  return (
    <DataTable<CommunicationRow>
      label="Communication by process group"
      columns={known}
      rows={sortRows(items, sort, value)}
      rowKey={(row, index) => `${row.kind} ${row.group} ${row.message_bytes} ${row.data_type} ${index}`}
      sort={sort}
      onSort={setSort}
      mostHeight={420}
      minWidth={740 + 110 * (known.length - shown.length + SOMETIMES.size)}
    />
  );
}
