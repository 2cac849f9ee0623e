// One kernel's launches by rank or by stream: numbers and a box plot of each on a common scale.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { KernelPart, KernelSpread as Spread } from "@/api/models";
import { reportQuery, sliceQuery } from "@/api/queries";
import { BoxPlot } from "@/charts/BoxPlots";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatCount, plural } from "@/units/quantities";
import { formatDeviations, isFar, type Sides } from "./kernelOutliers";
import { type ReportView, SOUGHT } from "../search";

/** Characters of a name that are searched: the report cuts long names behind them. */

interface Props {
  view: ReportView;
  /** Class and name, as the address has them: "compute gemm". */
  kernel: string;
  sides: Sides;
  sigma: number;
}

export function KernelSpread({ view, kernel, sides, sigma }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const cut = kernel.indexOf(" ");
  const [workClass, name] = [kernel.slice(0, cut), kernel.slice(cut + 1)];
  const query = useQuery(sliceQuery(view.namespace, view.uid, "kernel_spread"));
  const { data: report } = useQuery(reportQuery(view.namespace, view.uid));
  const there = query.data !== undefined;
  useEffect(() => {
    if (there) place.current?.scrollIntoView({ block: "nearest" });
  }, [there]);
  return (
    <div className="kernel-spread" ref={place} role="group" aria-label="Launches of one kernel">
      <header className="row">
        <h3>
          <Name text={name} most={120} code />
        </h3>
        {report?.has_timeline && (
          <Link
            to="/reports/$namespace/$uid/timeline"
            params={{ namespace: view.namespace, uid: view.uid }}
            search={{ find: name.slice(0, SOUGHT), rank: view.search.rank === undefined ? undefined : String(view.search.rank) }}
          >
            An example in the timeline
          </Link>
        )}
        <button type="button" className="small" onClick={() => view.change({ kernel: undefined })}>
          Close
        </button>
      </header>
      <Loaded query={query} what="the launches of this kernel" rows={3} cut="kernel">
        {({ kernels }) => {
          const spread = kernels.find((one) => one.name === name && one.work_class === workClass);
          return spread ? (
            <Parts spread={spread} sides={sides} sigma={sigma} view={view} />
          ) : (
            <p className="quiet">It is not among the {plural(kernels.length, "kernel")} with most time, whose launches are kept here.</p>
          );
        }}
      </Loaded>
    </div>
  );
}

function Parts({ spread, sides, sigma, view }: { spread: Spread } & Omit<Props, "kernel">) {
  const parts = sides === "rank" ? spread.ranks : spread.streams;
  return (
    <>
      <p className="quiet">{explain(spread, sides)}</p>
      <DataTable<KernelPart>
        label={`One kernel by ${sides}`}
        columns={columns(spread, sides, sigma, view)}
        rows={[spread.whole, ...parts]}
        rowKey={({ rank, stream }) => `${rank} ${stream}`}
        rowHeight={30}
        mostHeight={330}
        minWidth={940}
      />
    </>
  );
}

function explain({ ranks, rank_count, streams, whole, work_class }: Spread, sides: Sides): string {
  const compared = work_class === "communication" ? " Communication is not compared: it lasts as long as the slowest rank lets it." : "";
  if (sides === "rank") {
    if (ranks.length === 0) return "No rank has this kernel among its 8 longest.";
    return `${plural(rank_count, "rank")} with this kernel among the 8 longest${rank_count > ranks.length ? `, here the ${ranks.length} farthest from the others` : ""}; each rank's mean is compared with the others' means.${compared}`;
  }
  if (whole.p25_ns === null) return "This report was made before kernels were kept by stream: analyse the traces again.";
  if (streams.length === 0) return "It ran on one stream.";
  return `${plural(streams.length, "stream")}; each stream's mean is compared with the launches on the others.${compared}`;
}

function columns(spread: Spread, sides: Sides, sigma: number, view: Props["view"]): Column<KernelPart>[] {
  const time = (id: string, header: string, pick: (part: KernelPart) => number): Column<KernelPart> => ({
    id,
    header,
    width: "84px",
    numeric: true,
    cell: (part) => formatDuration(pick(part)),
  });
  return [
    { id: "part", header: sides === "rank" ? "Rank" : "Stream", width: "110px", cell: (part) => <Part part={part} view={view} /> },
    { id: "count", header: "Launches", width: "90px", numeric: true, cell: ({ count }) => formatCount(count) },
    time("total", "Total", ({ total_ns }) => total_ns),
    time("mean", "Mean", ({ mean_ns }) => mean_ns),
    {
      id: "box",
      header: `${formatDuration(spread.from_ns)} to ${formatDuration(spread.to_ns)}`,
      width: "280px",
      explanation: "the shortest launch, the quartiles and the median, the 99th percentile; behind them all launches, where their distribution is kept",
      cell: (part) => <Box part={part} scale={[spread.from_ns, spread.to_ns]} />,
    },
    time("p99", "p99", ({ p99_ns }) => p99_ns),
    time("max", "Longest", ({ max_ns }) => max_ns),
    {
      id: "distance",
      header: "From the others",
      explanation: "how many standard deviations the mean is away from that of the others",
      cell: (part) =>
        part.deviations === null ? (
          <span className="quiet">–</span>
        ) : (
          <span className={isFar(part, sigma) ? "outlier" : "quiet"} title={`${formatDuration(part.mean_ns)} against ${formatDuration(part.others_mean_ns)}`}>
            {formatDeviations(part.deviations)}
          </span>
        ),
    },
  ];
}

function Part({ part: { rank, stream }, view }: { part: KernelPart; view: ReportView }) {
  if (stream !== null) return <Name text={stream} most={16} />;
  if (rank === null) return "All";
  return (
    <button type="button" className="small" aria-pressed={rank === view.search.rank} onClick={() => view.change({ rank: rank === view.search.rank ? undefined : rank })}>
      rank {rank}
    </button>
  );
}

function Box({ part, scale }: { part: KernelPart; scale: readonly [number, number] }) {
  const { min_ns, p25_ns, p50_ns, p75_ns, p99_ns, max_ns, density } = part;
  if (p25_ns === null || p75_ns === null) return <span className="quiet">not in this report</span>;
  const box = { min: min_ns, q1: p25_ns, median: p50_ns, q3: p75_ns, max: max_ns, low_whisker: min_ns, high_whisker: p99_ns, outside: [], outside_count: 0 };
  const [density_from, density_to] = density.length > 0 ? scale : [0, 0];
  return <BoxPlot measured={{ measure: "duration", unit: "ns", box, density, density_from, density_to }} width={262} points={[]} scale={scale} />;
}
