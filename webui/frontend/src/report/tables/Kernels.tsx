// Kernels and other device work by name: what takes the time, and what stands out from its like.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import type { KernelRow } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { SearchBox } from "@/parts/SearchBox";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatCount, formatShare, plural } from "@/units/quantities";
import { sentenceCase } from "@/units/text";
import { KernelSpread } from "./KernelSpread";
import { COLORS, DEFAULT_SIGMA, formatDeviations, longestDeviation, outlyingRanks, outlyingStreams, type Sides, standsOut } from "./kernelOutliers";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";
import { findKernels, type KernelTable, kernelTable } from "./kernelRows";

/** What is not listed by name; it has no parts of its own. */
const OTHER = "(other)";
const DEFAULT_SORT = "-total";
const KERNEL_SORTS = /^-?(total|count|mean|max|p99|name)$/;

export function KernelsSection({ view }: SectionProps) {
  const { search, change } = view;
  const sort = search.sort && KERNEL_SORTS.test(search.sort) ? search.sort : DEFAULT_SORT;
  const { rank } = search;
  const query = useQuery(sliceQuery(view.namespace, view.uid, "kernels"));
  const ofRanks = useQuery({ ...sliceQuery(view.namespace, view.uid, "rank_kernels"), enabled: rank !== undefined });
  const onText = useCallback((text: string) => change({ kernels: text || undefined }), [change]);
  const sigma = search.sigma ?? DEFAULT_SIGMA;
  const sides: Sides = search.by ?? "rank";
  const only = search.outliers === "only";
  const table = useMemo(() => query.data && kernelTable(query.data, ofRanks.data, rank), [query.data, ofRanks.data, rank]);
  const rows = useMemo(() => {
    const found = findKernels(table?.rows ?? [], search.kernels ?? "", sort);
    return only ? found.filter((row) => standsOut(row, sigma, sides)) : found;
  }, [table, search.kernels, sort, only, sigma, sides]);
  const total = table?.totalNs ?? 0;
  const { kernel } = search;
  // Rows that stay are not drawn again while nothing of this changes.
  const shown = useMemo(() => columns(total || 1, sigma, sides, kernel, change), [total, sigma, sides, kernel, change]);
  return (
    <Section
      id="kernels"
      title="Kernels"
      note={table && sayCount(table.rows.length, rank, query.data?.cut ?? 0)}
      lazyHeight={600}
      tools={
        <>
          {search.rank !== undefined && (
            <button type="button" className="small" onClick={() => change({ rank: undefined })}>
              All ranks
            </button>
          )}
          <label>
            Compare{" "}
            <select value={sides} aria-label="Compare the launches of a kernel" onChange={(event) => change({ by: event.target.value === "stream" ? "stream" : undefined })}>
              <option value="rank">its ranks</option>
              <option value="stream">its streams</option>
            </select>
          </label>
          <label className="slider">
            Outliers from {sigma} σ
            <input type="range" min={1} max={6} step={0.5} value={sigma} aria-label="Outliers from so many standard deviations" onChange={(event) => change({ sigma: Number(event.target.value) })} />
          </label>
          <label>
            <input type="checkbox" checked={only} onChange={(event) => change({ outliers: event.target.checked ? "only" : undefined })} /> only those
          </label>
          <SearchBox label="Search kernels" value={search.kernels ?? ""} onChange={onText} />
        </>
      }
    >
      <Loaded query={rank === undefined || query.data === undefined ? query : { ...ofRanks, data: ofRanks.data && query.data }} what="kernels" rows={8}>
        {({ asked_classes: asked }) => (
          <>
            {table && <Classes table={table} />}
            {asked.length > 0 && (
              <p className="quiet">
                Classes as asked: <Name text={asked.join(", ")} most={600} />
              </p>
            )}
            {rows.length === 0 ? (
              <Empty title={only ? `No kernel stands out by ${sigma} σ` : search.kernels ? "No kernel has this in its name" : "No device work in these traces"}>
                {rank !== undefined && !table && <p>This report keeps no kernels of rank {rank} by itself.</p>}
                {!only && !search.kernels && rank === undefined && <p>On CPU-only ranks the time is in operators: see the stages.</p>}
              </Empty>
            ) : (
              <DataTable<KernelRow>
                label="Kernels"
                columns={shown}
                rows={rows}
                rowKey={({ statistics }, index) => `${statistics.work_class} ${statistics.name} ${index}`}
                sort={sort}
                onSort={(next) => change({ sort: next })}
                minWidth={1210}
              />
            )}
            {search.kernel && <KernelSpread key={search.kernel} view={view} kernel={search.kernel} sides={sides} sigma={sigma} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}

function sayCount(names: number, rank: number | undefined, cut: number): string {
  if (rank !== undefined) return `${plural(names, "name")}, rank ${rank} alone`;
  return `${plural(names, "name")}, all ranks${cut > 0 ? `; ${plural(cut, "kernel")} with less time in report.json alone` : ""}`;
}

function Classes({ table }: { table: KernelTable }) {
  if (table.totalNs === 0) return null;
  return (
    <p className="row">
      {table.classes.map((work) => (
        <span key={work.work_class}>
          <span className="dot" style={{ background: `var(${COLORS[work.work_class]})` }} /> {sentenceCase(work.work_class)} {formatShare(work.total_ns / table.totalNs)}{" "}
          <span className="quiet">
            {formatDuration(work.total_ns)}, {plural(work.count, "row")}
          </span>
        </span>
      ))}
    </p>
  );
}

function columns(whole: number, sigma: number, sides: Sides, chosen: string | undefined, change: ReportView["change"]): Column<KernelRow>[] {
  const time = (id: string, header: string, pick: (row: KernelRow) => number, sortable = true): Column<KernelRow> => ({
    id,
    header,
    width: "84px",
    numeric: true,
    sortable,
    cell: (row) => formatDuration(pick(row)),
  });
  return [
    {
      id: "name",
      header: "Name",
      sortable: true,
      cell: ({ spoken_name, statistics: { name, work_class } }) => {
        const key = `${work_class} ${name}`;
        const dot = <span className="dot" style={{ background: `var(${COLORS[work_class]})` }} title={work_class} aria-hidden="true" />;
        if (name === OTHER) return <>{dot} {name}</>;
        return (
          <button type="button" className="row-button" aria-expanded={key === chosen} onClick={() => change({ kernel: key === chosen ? undefined : key })}>
            {dot} <span className="unseen">Launches of </span>
            <Name text={spoken_name} whole={name} most={72} code />
          </button>
        );
      },
    },
    { id: "share", header: "Share", width: "112px", numeric: true, cell: ({ statistics }) => <ShareBar share={statistics.total_ns / whole} color={COLORS[statistics.work_class] ?? "--idle"} /> },
    time("total", "Total", (row) => row.statistics.total_ns),
    { id: "count", header: "Launches", width: "96px", numeric: true, sortable: true, cell: ({ statistics }) => formatCount(statistics.count) },
    { id: "bars", header: "Durations", width: "110px", explanation: "launches by equal factors of time, from the shortest to the longest", cell: ({ bars, statistics: { min_ns: from, max_ns: to } }) => <Bars counts={bars} from={from} to={to} /> },
    time("mean", "Mean", (row) => row.statistics.mean_ns),
    time("p50", "p50", (row) => row.statistics.p50_ns, false),
    time("p99", "p99", (row) => row.statistics.p99_ns),
    {
      id: "max",
      header: "Longest",
      width: "128px",
      numeric: true,
      sortable: true,
      explanation: "and how many standard deviations it is above the mean",
      cell: (row) => {
        const deviation = longestDeviation(row);
        return (
          <span className={deviation !== null && deviation >= sigma ? "outlier" : undefined}>
            {formatDuration(row.statistics.max_ns)}
            {deviation !== null && <span className="quiet"> {deviation.toFixed(1)} σ</span>}
          </span>
        );
      },
    },
    sides === "rank"
      ? {
          id: "outliers",
          header: "Stands out on",
          width: "190px",
          explanation: "ranks whose mean is far from that of the others",
          cell: (row) =>
            outlyingRanks(row, sigma)
              .slice(0, 3)
              .map((one) => (
                <button type="button" key={one.rank} className="small" title={`${formatDuration(one.mean_ns)} against ${formatDuration(one.others_mean_ns)}`} onClick={() => change({ rank: one.rank })}>
                  rank {one.rank} {formatDeviations(one.deviations)}
                </button>
              )),
        }
      : {
          id: "outliers",
          header: "Stands out on stream",
          width: "220px",
          explanation: "streams whose mean is far from that of the launches on the others",
          cell: (row) =>
            outlyingStreams(row, sigma)
              .slice(0, 2)
              .map((one) => (
                <span key={one.stream} className="outlier" title={`${formatDuration(one.mean_ns)} against ${formatDuration(one.others_mean_ns)}`}>
                  <Name text={one.stream} most={12} /> {formatDeviations(one.deviations ?? 0)}
                </span>
              )),
        },
  ];
}

const [BARS_WIDTH, BARS_HEIGHT] = [96, 20];

function Bars({ counts, from, to }: { counts: readonly number[]; from: number; to: number }) {
  const most = Math.max(0, ...counts);
  if (most === 0) return <span className="quiet">–</span>;
  const width = BARS_WIDTH / counts.length;
  const path = counts.map((count, bar) => (count > 0 ? `M${bar * width} ${BARS_HEIGHT}v${-Math.max(1, (count / most) * BARS_HEIGHT)}h${width - 0.5}V${BARS_HEIGHT}z` : "")).join("");
  return (
    <svg width={BARS_WIDTH} height={BARS_HEIGHT} className="bars" role="img" aria-label={`durations from ${formatDuration(from)} to ${formatDuration(to)}`}>
      <path d={path} />
    </svg>
  );
}
