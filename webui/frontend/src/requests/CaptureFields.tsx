import type { JobOfDay } from "@/api/models";
import { middleCut, visibleText } from "@/units/text";
import { type CaptureForm, COLLECT, KINDS } from "./captureForm";

/** The fields that most captures need; the YAML holds the others. */
interface Props {
  form: CaptureForm;
  namespace: string;
  running: readonly JobOfDay[];
  onChange: (form: CaptureForm) => void;
  onPick: (job: JobOfDay) => void;
}

const keyOf = ({ namespace, kind, name }: Pick<JobOfDay, "namespace" | "kind" | "name">) => `${namespace}/${kind}/${name}`;

export function CaptureFields({ form, namespace, running, onChange, onPick }: Props) {
  const offered = running.filter(({ kind }) => kind in KINDS);
  const kinds = form.kind in KINDS ? Object.keys(KINDS) : [form.kind, ...Object.keys(KINDS)];
  const picked = offered.find((one) => form.target === "workload" && keyOf(one) === keyOf({ ...form, namespace }));
  const set = (changes: Partial<CaptureForm>) => onChange({ ...form, ...changes });
  const collect = (value: string, on: boolean) => set({ collect: COLLECT.map(([one]) => one).filter((one) => (one === value ? on : form.collect.includes(one))) });
  return (
    <div className="capture-fields">
      <fieldset>
        <legend>Which job</legend>
        {offered.length > 0 && (
          <select
            aria-label="Running job"
            value={picked ? keyOf(picked) : ""}
            onChange={(event) => {
              const job = offered.find((one) => keyOf(one) === event.target.value);
              if (job) onPick(job);
            }}
          >
            <option value="">one that runs …</option>
            {offered.map((job) => (
              <option key={keyOf(job)} value={keyOf(job)}>
                {`${middleCut(visibleText(job.name), 40)} (${middleCut(visibleText(job.namespace), 24)})${job.captured ? "" : ", never captured"}`}
              </option>
            ))}
          </select>
        )}
        <select aria-label="Found by" value={form.target} onChange={(event) => set({ target: event.target.value as CaptureForm["target"] })}>
          <option value="workload">by name</option>
          <option value="labels">by labels</option>
        </select>
        {form.target === "workload" ? (
          <>
            <select aria-label="Kind" value={form.kind} onChange={(event) => set({ kind: event.target.value })}>
              {kinds.map((kind) => (
                <option key={kind}>{kind}</option>
              ))}
            </select>
            <input aria-label="Name" placeholder="train" required value={form.name} maxLength={253} onChange={(event) => set({ name: event.target.value })} />
          </>
        ) : (
          <input aria-label="Labels" placeholder="team=vision, stage=pretrain" required value={form.labels} maxLength={500} onChange={(event) => set({ labels: event.target.value })} />
        )}
      </fieldset>
      <fieldset>
        <legend>How much</legend>
        <input aria-label="Length" inputMode="numeric" className="short" value={form.length} maxLength={9} onChange={(event) => set({ length: event.target.value })} />
        <select aria-label="Unit of the length" value={form.window} onChange={(event) => set({ window: event.target.value as CaptureForm["window"] })}>
          <option value="iterations">iterations</option>
          <option value="milliseconds">milliseconds</option>
        </select>
      </fieldset>
      <fieldset>
        <legend>Which ranks</legend>
        <select aria-label="Ranks" value={form.ranks} onChange={(event) => set({ ranks: event.target.value as CaptureForm["ranks"] })}>
          <option value="all">all</option>
          <option value="every">every Nth</option>
          <option value="sample">N, spread over the nodes</option>
          <option value="list">these</option>
        </select>
        {form.ranks !== "all" && (
          <input aria-label={form.ranks === "list" ? "Numbers of the ranks" : "N"} className="short" placeholder={form.ranks === "list" ? "0, 8, 16" : "8"} required value={form.rankValue} maxLength={2000} onChange={(event) => set({ rankValue: event.target.value })} />
        )}
      </fieldset>
      <fieldset>
        <legend>What else to record, at a cost to the job</legend>
        {COLLECT.map(([value, meaning, shown]) => (
          <label key={value} title={`Shown in ${shown}`}>
            <input type="checkbox" checked={form.collect.includes(value)} onChange={(event) => collect(value, event.target.checked)} /> {meaning}
          </label>
        ))}
      </fieldset>
    </div>
  );
}
