// The ranks that the others wait for, the reason, and the potential saving.
import { useQuery } from "@tanstack/react-query";
import type { Straggler, StragglerSlice } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { HostLink } from "@/parts/HostLink";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatMeasure, plural } from "@/units/quantities";
import { measureName, sentenceCase } from "@/units/text";
import { Place } from "../Place";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";

export function StragglersSection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "stragglers"));
  return (
    <Section id="stragglers" title="Stragglers" lazyHeight={160}>
      <Loaded query={query} what="who is late">
        {(slice) =>
          slice.found === null ? (
            <p className="quiet">This report has no verdict: a verdict needs two ranks that communicate.</p>
          ) : (
            <Body slice={slice} page={slice.found} view={view} />
          )
        }
      </Loaded>
    </Section>
  );
}

function Body({ slice, page, view }: { slice: StragglerSlice; page: NonNullable<StragglerSlice["found"]>; view: ReportView }) {
  const rows = [...page.ranks.map((row) => ({ ...row, named: true })), ...page.order.map((row) => ({ ...row, named: false }))];
  const most = Math.max(1, ...rows.map(({ lateness_ns }) => lateness_ns));
  return (
    <>
      <p>
        <Name text={`${slice.sentence}.`} most={600} />
      </p>
      {slice.hosts.map((sentence) => (
        <p key={sentence}>
          <Name text={sentence} most={600} />
        </p>
      ))}
      {page.order.length > 0 && <p className="quiet">Ranks in grey were replayed too, and are not named.</p>}
      {rows.length > 0 && (
        <DataTable<Straggler & { named: boolean }>
          label="Ranks by what they cost"
          columns={columns(most)}
          rows={rows}
          rowKey={(row) => row.rank}
          rowHeight={62}
          mostHeight={420}
          minWidth={860}
          isSelected={(row) => row.rank === view.search.rank}
          onSelect={(row) => view.change({ rank: row.rank === view.search.rank ? undefined : row.rank })}
        />
      )}
      {page.slow_links.length > 0 && (
        <ul>
          {page.slow_links.map((link) => (
            <li key={link.ranks.join(" ")}>
              {sentenceCase(link.collective)} of ranks {link.ranks.join(", ")}: {formatDuration(link.transfer_ns)} against {formatDuration(link.usual_ns)} of sister groups (×
              {link.factor.toFixed(2)}, {plural(link.operations, "operation")})
            </li>
          ))}
        </ul>
      )}
      <p className="quiet">
        {plural(page.operations, "operation")} of {plural(page.iterations.length, "iteration")} replayed
        {page.unmatched > 0 && `, ${plural(page.unmatched, "operation")} without a partner`}
        {page.not_captured.length > 0 && `; ranks not captured: ${page.not_captured.slice(0, 12).join(", ")}`}
        {slice.cut > 0 && `; ${plural(slice.cut, "rank")} more in report.json`}
      </p>
      {slice.notes.map((note) => (
        <p key={note} className="quiet">
          <Name text={note} most={600} />
        </p>
      ))}
    </>
  );
}

function columns(most: number): Column<Straggler & { named: boolean }>[] {
  return [
    {
      id: "rank",
      header: "Rank",
      width: "120px",
      cell: (row) => (
        <span className="verdict-cell">
          {row.named ? <strong>rank {row.rank}</strong> : <span className="quiet">rank {row.rank}</span>}
          {row.host && (
            <span className="quiet">
              {" "}
              on <HostLink host={row.host} most={30} />
            </span>
          )}
        </span>
      ),
    },
    {
      id: "lateness",
      header: "Lateness",
      width: "170px",
      numeric: true,
      explanation: "mean wait of the other ranks for it, per iteration",
      cell: (row) => (
        <span className="share">
          <span className="share-number">{formatDuration(row.lateness_ns)}</span>
          <svg width="72" height="8" aria-hidden="true">
            <rect width="72" height="8" className="share-ground" />
            <rect width={(row.lateness_ns / most) * 72} height="8" fill={row.named ? "var(--communication)" : "var(--idle)"} />
          </svg>
        </span>
      ),
    },
    { id: "cause", header: "Cause", width: "150px", cell: (row) => <>{sentenceCase(row.cause)}{row.pattern === "intermittent" && <span className="quiet"> · now and then</span>}</> },
    { id: "gain", header: "Potential saving", width: "120px", numeric: true, explanation: "share of the iteration that goes when it is as fast as its peers", cell: (row) => <ShareBar share={row.gain} color="--compute" /> },
    {
      id: "evidence",
      header: "Evidence, beside its peers",
      cell: (row) => (
        <span className="verdict-cell three-lines">
          {row.evidence.slice(0, 3).map((one, index) => (
            <span key={one.measure}>
              {index > 0 && "; "}
              {measureName(one.measure)} <strong>{formatMeasure(one.value, one.unit)}</strong> against {formatMeasure(one.usual, one.unit)}
            </span>
          ))}
          {row.place && (
            <>
              {row.evidence.length > 0 && "; "}
              <Place place={row.place} />
            </>
          )}
        </span>
      ),
    },
  ];
}
