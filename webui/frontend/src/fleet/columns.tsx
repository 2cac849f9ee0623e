// Columns of the fleet. Their ids are the service's names of sorts.
import { Link } from "@tanstack/react-router";
import type { Figures, Workload } from "@/api/models";
import { ShareBar } from "@/charts/ShareBar";
import { Sparkline } from "@/charts/Sparkline";
import type { Column } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { formatAgo, formatDate } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { formatCount, formatPermille, formatPerSecond, formatPower, plural } from "@/units/quantities";

const share = (permille: number | null | undefined) => (permille == null ? null : permille / 1000);

function WorkloadCell({ row }: { row: Workload }) {
  return (
    <div className="two-lines">
      <Link to="/fleet/$namespace/$kind/$name" params={{ namespace: row.namespace, kind: row.kind || "-", name: row.name }}>
        <Name text={row.name} most={48} />
      </Link>
      <span className="quiet">
        <Name text={row.namespace} most={24} /> · <Name text={row.kind || "kind not known"} most={24} />
        {row.captures > 1 && ` · ${plural(row.captures, "capture")}`}
      </span>
    </div>
  );
}

function VerdictCell({ row }: { row: Workload }) {
  const { last } = row;
  const where = { namespace: last.namespace, uid: last.uid };
  if (!last.figures) {
    return (
      <Link to="/requests/$namespace/$uid" params={where} className="verdict-cell">
        {last.problem ? <Name text={last.problem} most={90} /> : `No report: ${last.state}`}
      </Link>
    );
  }
  return (
    <Link to="/reports/$namespace/$uid" params={where} className="verdict-cell" title={last.figures.sentence}>
      {last.figures.sentence}
    </Link>
  );
}

function CompareCell({ row, compare }: { row: Workload; compare: string | undefined }) {
  const at = `${row.last.namespace}/${row.last.uid}`;
  if (!row.last.figures || at === compare) return null;
  return compare ? (
    <Link to="/diff" search={{ base: compare, new: at }} className="button small">
      with this
    </Link>
  ) : (
    <Link to="/fleet" search={(before) => ({ ...before, compare: at })} className="button small" aria-label={`Compare ${row.name} with another`}>
      Compare
    </Link>
  );
}

function deviceOf(figures: Figures | null): string {
  if (!figures) return "–";
  return figures.gpu || (figures.kind === "gpu" ? "unknown GPU" : "CPU only");
}

// Figures that few captures have are columns where one of these rows has them.
const RARE = { power: "power_mw", samples: "rank_samples_per_ks", mfu: "model_utilization_permille" } as const;

export function fleetColumns(compare: string | undefined, rows: readonly Workload[]): Column<Workload>[] {
  const now = Date.now();
  const has = (figure: (typeof RARE)[keyof typeof RARE]) => rows.some(({ last }) => last.figures?.[figure] != null);
  const columns: Column<Workload>[] = [
    { id: "name", header: "Workload", width: "164px", sortable: true, cell: (row) => <WorkloadCell row={row} /> },
    { id: "verdict", header: "Verdict", explanation: "of the last report, in one sentence", cell: (row) => <VerdictCell row={row} /> },
    {
      id: "ranks",
      header: "Ranks",
      width: "92px",
      sortable: true,
      cell: ({ last }) => (
        <div className="two-lines">
          <span>{formatCount(last.figures?.rank_count)}</span>
          <span className="quiet">
            <Name text={deviceOf(last.figures)} most={40} />
          </span>
        </div>
      ),
    },
    {
      id: "busy",
      header: "Busy",
      width: "106px",
      numeric: true,
      sortable: true,
      explanation: "share of the time in which devices did anything",
      cell: ({ last }) => <ShareBar share={share(last.figures?.busy_permille)} color="--compute" />,
    },
    {
      id: "exposed",
      header: "Exposed comm.",
      width: "136px",
      numeric: true,
      sortable: true,
      explanation: "share of the time in communication without compute beside it, waiting for other ranks included",
      cell: ({ last }) => <ShareBar share={share(last.figures?.exposed_communication_permille)} color="--communication" />,
    },
    { id: "iteration", header: "Iteration", width: "84px", numeric: true, sortable: true, cell: ({ last }) => formatDuration(last.figures?.iteration_ns) },
    {
      id: "history",
      header: "Over time",
      width: "94px",
      explanation: "iteration time of its last reports, the oldest first",
      cell: ({ history }) => (
        <Sparkline
          values={history.map(({ iteration_ns }) => iteration_ns)}
          summary={`iteration time of ${plural(history.length, "report")}: ${history.map(({ iteration_ns }) => formatDuration(iteration_ns)).join(", ")}`}
        />
      ),
    },
    {
      id: "samples",
      header: "Samples/s",
      width: "88px",
      numeric: true,
      sortable: true,
      explanation: "of one rank: by the pods' label, else the rows of its model's input in an iteration",
      cell: ({ last }) => formatPerSecond(last.figures?.rank_samples_per_ks),
    },
    {
      id: "mfu",
      header: "MFU",
      width: "70px",
      numeric: true,
      sortable: true,
      explanation: "floating-point operations of the model over the published peak of the device",
      cell: ({ last }) => formatPermille(last.figures?.model_utilization_permille),
    },
    { id: "power", header: "Power", width: "76px", numeric: true, sortable: true, cell: ({ last }) => formatPower(last.figures?.power_mw) },
    {
      id: "last",
      header: "Last",
      width: "96px",
      numeric: true,
      sortable: true,
      cell: ({ last }) => <time title={formatDate(last.submitted_unix_ns)}>{formatAgo(last.submitted_unix_ns, now)}</time>,
    },
    { id: "compare", header: "", width: "92px", cell: (row) => <CompareCell row={row} compare={compare} /> },
  ];
  return columns.filter(({ id }) => !(id in RARE) || has(RARE[id as keyof typeof RARE]));
}
