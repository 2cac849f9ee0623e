// Why devices were idle: what the host was doing while nothing ran on them.
import { useQuery } from "@tanstack/react-query";
import type { Slices } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { IDLE_CAUSES } from "@/api/idleCauses";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatShare } from "@/units/quantities";
import { capital, sentenceCase } from "@/units/text";
import type { SectionProps } from "./sections";

type Kind = Slices["idle"]["kinds"][number];
type Iteration = Slices["idle"]["iterations"][number];
type CauseName = keyof typeof IDLE_CAUSES;

export function IdleSection({ view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "idle"));
  return (
    <Section id="idle" title="Why the GPU was idle" note="the causes add up to the idle time exactly" lazyHeight={200}>
      <Loaded query={query} what="idle time" cut="iteration">
        {({ kinds, iterations }) => (
          <>
            {kinds.map((kind) => (
              <Causes key={kind.kind} kind={kind} />
            ))}
            {iterations.length > 0 && (
              <details>
                <summary>Iteration by iteration</summary>
                <Iterations rows={iterations} />
              </details>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

function Causes({ kind }: { kind: Kind }) {
  return (
    <>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">Cause</th>
            <th scope="col" className="numeric">Share of idle</th>
            <th scope="col" className="numeric">Time</th>
            <th scope="col">What it is</th>
          </tr>
        </thead>
        <tbody>
          {kind.causes.map(({ name, title, time_ns: time, meaning }) => (
            <tr key={name}>
              <th scope="row">{sentenceCase(title)}</th>
              <td className="numeric">
                <ShareBar share={kind.idle_ns > 0 ? time / kind.idle_ns : null} color={colorOf(name)} />
              </td>
              <td className="numeric">{formatDuration(time)}</td>
              <td>
                <Name text={capital(meaning)} most={600} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {kind.unrecorded.map(({ words, time_ns: time }) => (
        <p key={words} className="quiet">
          Not recorded: {words}, {formatDuration(time)}
        </p>
      ))}
    </>
  );
}

function colorOf(cause: string): string {
  const shown = IDLE_CAUSES[cause as CauseName] ?? "other";
  return shown === "other" ? "--idle" : `--${shown.replace("_", "-")}`;
}

function Iterations({ rows }: { rows: readonly Iteration[] }) {
  const columns: Column<Iteration>[] = [
    { id: "iteration", header: "Iteration", width: "96px", numeric: true, cell: (row) => row.iteration },
    { id: "idle", header: "Idle", width: "96px", numeric: true, cell: (row) => formatDuration(row.idle_ns) },
    ...(Object.keys(IDLE_CAUSES) as CauseName[]).map<Column<Iteration>>((cause) => ({
      id: cause,
      header: sentenceCase(cause),
      width: "120px",
      numeric: true,
      cell: (row) => (row.idle_ns > 0 ? formatShare((row.causes[cause] ?? 0) / row.idle_ns) : "–"),
    })),
  ];
  return <DataTable<Iteration> label="Idle time by iteration" columns={columns} rows={rows} rowKey={(row) => row.iteration} mostHeight={360} minWidth={1032} />;
}
