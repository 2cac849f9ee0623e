import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { capital } from "@/units/text";
import type { SectionProps } from "./sections";

/** Samples, arithmetic and energy of the job, in sentences. */
export function ThroughputSection({ report: { throughput, efficiency, energy } }: SectionProps) {
  return (
    <Section id="throughput" title="Throughput, arithmetic, energy">
      {[...throughput, ...efficiency, ...energy].map((sentence) => (
        <p key={sentence}>
          <Name text={capital(sentence)} most={600} />
        </p>
      ))}
    </Section>
  );
}
