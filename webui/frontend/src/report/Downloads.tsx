import { useMutation } from "@tanstack/react-query";
import { path } from "@/api/client";
import { CopyButton } from "@/parts/CopyButton";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { formatBytes } from "@/units/quantities";
import { filePath, openTrace } from "./perfetto";
import type { SectionProps } from "./sections";

/** The files of the report, and traces in Perfetto. */
export function Downloads({ report }: SectionProps) {
  const { namespace, uid, files, whole_traces: worth } = report;
  const open = useMutation({ mutationFn: (file: string) => openTrace(namespace, uid, file, `${report.title} ${file}`) });
  const cut = `fleetprof report ${uid} --trace-window worst --out cut.json.gz`;
  const isTrace = (name: string) => name.endsWith("trace.json.gz") || name.endsWith("trace.json");
  const isWorth = (name: string) => worth.some((rank) => name.startsWith(`ranks/${rank}/`));
  return (
    <Section id="downloads" title="Downloads" note={worth.length > 0 && `traces to open first: rank ${worth.slice(0, 8).join(", ")}`}>
      {files.length === 0 ? (
        <p className="quiet">The store holds no file of this report that can be fetched here.</p>
      ) : (
        <table className="plain">
          <tbody>
            {files.map(({ name, size_bytes }) => (
              <tr key={name}>
                <td>
                  <a href={filePath(namespace, uid, name)} download={isTrace(name) || undefined}>
                    <Name text={name} most={80} code />
                  </a>
                  {isWorth(name) && isTrace(name) && <span className="quiet"> · open this first</span>}
                </td>
                <td className="numeric">{formatBytes(size_bytes)}</td>
                <td>
                  {isTrace(name) && (
                    <button type="button" className="small" disabled={open.isPending} onClick={() => open.mutate(name)}>
                      Open in Perfetto
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {report.has_tables && (
        <p>
          <a href={path("reports", namespace, uid, "tables.zip")} download>
            All tables as Parquet
          </a>{" "}
          <span className="quiet">tables.zip, for pandas, DuckDB and others</span>
        </p>
      )}
      {files.some(({ name }) => isTrace(name)) && (
        <p className="row">
          <span>The slowest iteration of the ranks that matter, as one trace for Perfetto:</span> <code>{cut}</code> <CopyButton text={cut} label="Copy the command" />
        </p>
      )}
      {open.error && <p role="alert">{open.error.message}</p>}
    </Section>
  );
}
