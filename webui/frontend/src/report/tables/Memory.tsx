// Copies by direction, peak memory of the devices, and the memory that recording took.
import { useQuery } from "@tanstack/react-query";
import type { Slices } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatBytes, formatCount, formatRate } from "@/units/quantities";
import type { SectionProps } from "../sections";

type Slice = Slices["memory"];
type Copies = Slice["copies"][number];
type Peak = Slice["peaks"][number];

const COPIES: readonly Column<Copies>[] = [
  { id: "direction", header: "Direction", cell: (row) => <Name text={row.direction} most={40} /> },
  { id: "count", header: "Count", width: "96px", numeric: true, cell: (row) => formatCount(row.count) },
  { id: "time", header: "Time", width: "110px", numeric: true, cell: (row) => formatDuration(row.total_ns) },
  { id: "size", header: "Size", width: "170px", numeric: true, cell: (row) => row.size },
  { id: "rate", header: "Rate", width: "120px", numeric: true, explanation: "of the middle rank", cell: (row) => formatRate(row.bytes_per_s) },
];
const PEAKS: readonly Column<Peak>[] = [
  { id: "rank", header: "Rank", width: "72px", numeric: true, cell: (row) => row.rank },
  { id: "device", header: "Device", cell: ({ peak }) => <Name text={peak.device} most={40} /> },
  { id: "allocated", header: "Allocated", width: "120px", numeric: true, explanation: "most that PyTorch's allocator had given out", cell: ({ peak }) => formatBytes(peak.allocated_bytes) },
  { id: "reserved", header: "Reserved", width: "120px", numeric: true, explanation: "most that it had taken from the device", cell: ({ peak }) => formatBytes(peak.reserved_bytes) },
  { id: "first", header: "At the beginning", width: "150px", numeric: true, cell: ({ peak }) => formatBytes(peak.first_allocated_bytes) },
];

export function MemorySection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "memory"));
  return (
    <Section id="memory" title="Copies and memory" lazyHeight={160}>
      <Loaded query={query} what="memory" cut="device">
        {(slice) => <Body slice={slice} />}
      </Loaded>
    </Section>
  );
}

function Body({ slice: { copies, peaks, recording } }: { slice: Slice }) {
  if (copies.length + peaks.length === 0 && !recording) return <Empty title="No copies and no events of PyTorch's allocators in these traces" />;
  return (
    <>
      {copies.length > 0 && <DataTable<Copies> label="Copies by direction" columns={COPIES} rows={copies} rowKey={(row) => row.direction} mostHeight={300} minWidth={640} />}
      {peaks.length > 0 && (
        <>
          <h3>Peak memory</h3>
          <DataTable<Peak> label="Peak memory" columns={PEAKS} rows={peaks} rowKey={(row, index) => `${row.rank} ${row.peak.device} ${index}`} mostHeight={360} minWidth={640} />
        </>
      )}
      {recording && (
        <>
          <h3>Memory that recording took</h3>
          <p>
            At its peak: {recording.peak} <span className="quiet">{recording.peak_context}</span>
          </p>
          <p>
            Kept: {recording.kept} <span className="quiet">{recording.kept_context}</span>
          </p>
        </>
      )}
    </>
  );
}
