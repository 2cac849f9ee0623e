import { Section } from "@/parts/Section";

const TERMS: readonly (readonly [term: string, meaning: string])[] = [
  ["rank", "One training process of the job; usually it drives one GPU."],
  ["span", "From the first start to the last end of work of a rank, counted in whole nanoseconds; the parts add up to it exactly."],
  ["compute", "Length of the union of all compute intervals: work that runs side by side on several streams counts once."],
  ["exposed communication", "Communication while no compute ran: what a perfect overlap could win back."],
  ["overlapped communication", "Communication while compute ran; a part of compute, so it is not added."],
  ["idle", "No work at all. On a GPU the host was too slow, or waited; on a CPU-only rank it was in Python, loading data or waiting."],
  ["not recorded", "Time of which the trace does not hold the device's work: it was launched and is not there. It is no idle time."],
  ["iteration", "From the end of one optimizer step to the end of the next (or one ProfilerStep range), on the rank's own clock."],
  ["late", "How long the other ranks waited for this one, per iteration: their waiting in a replay of the job as measured, less that with this rank as fast as its peers."],
  ["potential saving", "Share of the iteration time that would go if the rank were as fast as those that do the same work, or if a finding's cause went."],
  ["stage", "A part of the training loop, of the main thread: loading data, forward, loss, backward, optimizer, and the host between them."],
  ["delay", "From the end of a launch call to the start of the work."],
  ["residue", "How much longer iterations take after the capture than before."],
];

/** The terms of the page. */
export function GlossarySection() {
  return (
    <Section id="glossary" title="What the terms mean" note="formulas: docs/measures.md">
      <dl className="facts wide">
        {TERMS.map(([term, meaning]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
