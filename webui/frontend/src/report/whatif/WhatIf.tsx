// The iteration under changes: sliders and bars, what bounds the job then, the interval, and the command that confirms it.
import { useQuery } from "@tanstack/react-query";
import { ALONE } from "@/api/alone";
import type { WhatIfSlice } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatBytes, formatChange, formatShare, plural } from "@/units/quantities";
import { capital } from "@/units/text";
import type { SectionProps } from "../sections";
import { type Answer, type Changes, findAnswer, listEdits, listOffers, readChanges } from "./answers";
import { BoundBy } from "./BoundBy";
import { BatchBars, Steps } from "./Controls";
import { type JobLines, useLines } from "./useLines";
import "./whatif.css";

/** Changes that are on or off: how they are named, and what makes them so. */
const REMEDIES: Readonly<Record<string, (value: string) => string>> = {
  "without-straggler": (rank) => `Rank ${rank} as fast as a rank with the same work`,
  loader: () => "No wait for the data loader",
  graph: () => "All launches as one CUDA graph",
};
const WAYS: Readonly<Record<string, (value: string) => string>> = {
  batch_size: (size) => `give each rank ${size} samples, by the flag or line of your script that says so`,
  network: (factor) => `give collectives ${factor} of the bandwidth: other links, or groups within a node`,
  ranks: (ranks) => `start ${ranks} ranks, each with the batch that it has now`,
  "without-straggler": (rank) => `mend rank ${rank}, as the findings say`,
  loader: () => "load the next batch while this one is computed: more workers, and prefetch",
  graph: () => "capture the step in a CUDA graph: torch.compile(mode=\"reduce-overhead\"), or torch.cuda.graph",
};

export function WhatIfSection({ report, view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "whatif"));
  return (
    <Section id="whatif" title="What if" note="an iteration under changes, with a 95 % interval" lazyHeight={240}>
      <Loaded query={query} what="what was predicted" cut="scenario">
        {(slice) => <Body report={report} view={view} slice={slice} />}
      </Loaded>
    </Section>
  );
}

function Body({ report, view, slice }: SectionProps & { slice: WhatIfSlice }) {
  const job = useLines(report, slice);
  const { values, refusals } = listOffers(slice);
  const changes = readChanges(view.search.whatif);
  const uid = ALONE ? "TRACES" : view.uid;
  if (values.size === 0 && job.lines === null) {
    return (
      <Empty title="Nothing was predicted in advance">
        <p>
          {capital(slice.predictions?.refused || [...refusals.values()][0] || "this report was made without its traces")}. <code>fleetprof whatif {uid} --set network=2x</code> answers one
          change of a capture with traces.
        </p>
      </Empty>
    );
  }
  const set = (key: string, value: string | undefined) => {
    const { [key]: _, ...others } = changes;
    const next = listEdits(value === undefined ? others : { ...others, [key]: value });
    view.change({ whatif: next.join(",") || undefined });
  };
  const offered = (key: string) => values.get(key) ?? [];
  const answer = findAnswer(slice, job.lines, changes);
  const size = Number(changes["batch_size"] ?? slice.samples);
  return (
    <div className="whatif">
      <div className="whatif-controls" role="group" aria-label="Changes">
        {job.lines && slice.samples !== null ? (
          <BatchBars lines={job.lines} size={size} now={slice.samples} onChange={(next) => set("batch_size", next === undefined ? undefined : String(next))} />
        ) : (
          slice.samples !== null &&
          offered("batch_size").length > 0 && (
            <Steps label="Batch size" values={offered("batch_size")} chosen={changes["batch_size"]} now={String(slice.samples)} say={(value) => `${value} samples on each rank`} onChange={(value) => set("batch_size", value)} />
          )
        )}
        {offered("ranks").length > 0 && <Steps label="Ranks" values={offered("ranks")} chosen={changes["ranks"]} now={String(slice.ranks)} say={(value) => plural(Number(value), "rank")} onChange={(value) => set("ranks", value)} />}
        {offered("network").length > 0 && <Steps label="Network" values={offered("network")} chosen={changes["network"]} now="1x" say={(value) => `${value} bandwidth`} onChange={(value) => set("network", value)} />}
        {Object.entries(REMEDIES).map(([key, say]) =>
          offered(key).map((value) => (
            <label key={key}>
              <input type="checkbox" checked={changes[key] === value} onChange={(event) => set(key, event.target.checked ? value : undefined)} /> {say(value)}
            </label>
          )),
        )}
        {listEdits(changes).length > 0 && (
          <button type="button" className="small" onClick={() => view.change({ whatif: undefined })}>
            As now
          </button>
        )}
      </div>
      <Told slice={slice} job={job} changes={changes} answer={answer} uid={uid} refusals={refusals} />
    </div>
  );
}

function Told({ slice, job, changes, answer, uid, refusals }: { slice: WhatIfSlice; job: JobLines; changes: Changes; answer: Answer | undefined; uid: string; refusals: ReadonlyMap<string, string> }) {
  const base = findAnswer(slice, job.lines, {});
  const quality = slice.predictions?.quality;
  const edits = listEdits(changes);
  const command = writeCommand(uid, job, changes);
  const now = base && { name: "Now", iterationNs: base.iteration.value, shares: base.boundBy };
  return (
    <div className="whatif-told">
      <div role="status">
        {answer ? <Sentence answer={answer} changed={edits.length > 0} /> : edits.length > 0 ? <p>Cannot say: no prediction was made of this in advance.</p> : <p>Drag a bar, or tick a change.</p>}
      </div>
      {now && now.shares && <BoundBy bars={answer && edits.length > 0 ? [now, { name: "Then", iterationNs: answer.iteration.value, shares: answer.boundBy }] : [now]} />}
      {edits.length > 0 && (
        <ul>
          {Object.entries(changes).map(([key, value]) => WAYS[key] && <li key={key}>To have it: {WAYS[key](value)}.</li>)}
        </ul>
      )}
      <p className="row">
        <code>{command}</code> <CopyButton text={command} label="Copy the command" />
      </p>
      <details>
        <summary>What it rests on</summary>
        <ul>
          {quality && (
            <li>
              The replay of the unchanged job is off by {formatShare(Math.abs(quality.error))}, at worst by {formatShare(quality.worst_error)} in one of {plural(quality.iterations, "iteration")}.
            </li>
          )}
          {answer?.restsOn.map((one) => (
            <li key={one}>
              <Name text={capital(one)} most={400} />
            </li>
          ))}
          {answer?.doubt && <li>Most of the interval: {answer.doubt}.</li>}
          {[...refusals].map(([key, reason]) => (
            <li key={key}>
              No answer for {key}: <Name text={reason} most={300} />
            </li>
          ))}
          {!job.lines && <li>Throughput and memory follow the batch size where captures of this job at two sizes say them (label fleetprof.io/samples-per-iteration).</li>}
        </ul>
      </details>
    </div>
  );
}

function Sentence({ answer, changed }: { answer: Answer; changed: boolean }) {
  const { iteration, change, throughputChange, memoryBytes, isProduct } = answer;
  return (
    <>
      <p className="big">{formatDuration(iteration.value)}</p>
      <p>
        an iteration (95 %: {formatDuration(iteration.low)} to {formatDuration(iteration.high)})
        {changed ? `, ${formatChange(change)} of the time now` : ", as recorded"}.
      </p>
      {changed && (
        <p>
          Throughput {formatChange(throughputChange)}
          {memoryBytes && `, peak memory ${formatBytes(memoryBytes.value)} (95 %: ${formatBytes(memoryBytes.low)} to ${formatBytes(memoryBytes.high)})`}.
        </p>
      )}
      {isProduct && <p className="quiet">The product of single predictions: the command computes these changes together.</p>}
    </>
  );
}

/** The command line that gives the same answer; several captures are for the batch size alone. */
function writeCommand(uid: string, { lines, captures }: JobLines, changes: Changes): string {
  const edits = listEdits(changes);
  const ofSize = lines !== null && edits.length === 1 && "batch_size" in changes;
  return ["fleetprof whatif", ...(ofSize ? captures : [uid]), ...edits.map((edit) => `--set ${edit}`)].join(" ");
}
