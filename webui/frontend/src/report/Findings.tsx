// Findings, the largest potential saving first, each with a way to its evidence.
import { Link } from "@tanstack/react-router";
import type { Finding } from "@/api/models";
import { ShareBar } from "@/charts/ShareBar";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { colorOfFinding } from "@/theme/classes";
import { formatDuration } from "@/units/durations";
import { capital } from "@/units/text";
import { evidenceOf } from "./evidence";
import { Place } from "./Place";
import type { SectionProps } from "./sections";

export function Findings({ report, view }: SectionProps) {
  return (
    <Section id="findings" title="Findings" note={report.findings.length > 0 && "the largest potential saving first"}>
      {report.findings.length === 0 ? (
        <p className="quiet">Nothing stands out in these traces.</p>
      ) : (
        <ol className="findings">
          {report.findings.map((finding, index) => (
            // oxlint-disable-next-line react/no-array-index-key
            <li key={`${finding.kind}-${index}`}>
              <Row finding={finding} report={report} view={view} />
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

/** A number of JavaScript keeps a time of Unix to 256 ns, less than a pixel of any view of it. */
const placeOf = ({ rank, start_ns: start, duration_ns: duration }: NonNullable<Finding["example"]>) => `${rank}:${BigInt(Math.round(start))}:${duration}`;

function Row({ finding, report, view }: SectionProps & { finding: Finding }) {
  const evidence = evidenceOf(finding.measure || finding.kind);
  const [rank] = finding.ranks;
  return (
    <>
      <div className="gain">{finding.gain_permille > 0 ? <ShareBar share={finding.gain_permille / 1000} color={colorOfFinding(finding.measure, finding.part)} /> : <span className="quiet">no saving given</span>}</div>
      <div>
        <p className="finding-message">
          <Name text={capital(finding.message)} most={600} />
        </p>
        {finding.advice && (
          <p>
            <Name text={capital(finding.advice)} most={600} />
          </p>
        )}
        <p className="quiet row">
          <a href={`#${evidence.id}`} onClick={() => rank !== undefined && view.change({ rank })}>
            See {evidence.name}
          </a>
          {finding.example && report.has_timeline && (
            <Link to="/reports/$namespace/$uid/timeline" params={{ namespace: view.namespace, uid: view.uid }} search={{ at: placeOf(finding.example) }}>
              An example in the timeline
            </Link>
          )}
          {finding.value_ns != null && <span>{formatDuration(finding.value_ns)} over all ranks</span>}
          {finding.ranks.length > 0 && <span>most on rank {finding.ranks.join(", ")}</span>}
          {finding.place && <Place place={finding.place} />}
          {finding.names.map((name) => (
            <Name key={name} text={name} most={48} code />
          ))}
        </p>
      </div>
    </>
  );
}
