// A new capture: a form, and the request that it means as YAML, which the command line and kubectl take as well. The YAML is
// what is sent, so that it may be changed by hand. The service checks it, and names each wrong field.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { postJson } from "@/api/client";
import type { CaptureAnswer, CaptureCheck } from "@/api/models";
import { jobsQuery, requestQuery, whoamiQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Failed, Loading } from "@/parts/States";
import { capital } from "@/units/text";
import { CaptureFields } from "./CaptureFields";
import { fillForm, writeCommand, writeYaml } from "./captureForm";

interface Props {
  /** NAMESPACE/UID of the request that is asked for again. */
  repeat: string | undefined;
  /** NAMESPACE/KIND/NAME of the job that the form begins with. */
  job: string | undefined;
  mayCapture: boolean;
  onClose: () => void;
}

export function NewCapture({ repeat, job, mayCapture, onClose }: Props) {
  const [namespace = "", uid = ""] = repeat?.split("/") ?? [];
  const before = useQuery({ ...requestQuery(namespace, uid), enabled: Boolean(uid) });
  return (
    <section className="panel" aria-labelledby="new-capture">
      <header className="section-head">
        <h2 id="new-capture">{uid ? "Ask again" : "New capture"}</h2>
        <div className="tools">
          <button type="button" className="small" onClick={onClose}>
            Close
          </button>
        </div>
      </header>
      {uid && !before.data ? (
        before.error ? <Failed error={before.error} /> : <Loading what="the request" />
      ) : (
        <Form key={repeat ?? job ?? ""} start={before.data?.yaml || undefined} repeated={namespace} job={job} mayCapture={mayCapture} />
      )}
    </section>
  );
}

interface FormProps {
  /** The YAML to begin with, and the namespace of its request. */
  start: string | undefined;
  repeated: string;
  job: string | undefined;
  mayCapture: boolean;
}

function Form({ start, repeated, job, mayCapture }: FormProps) {
  const filled = fillForm(job);
  const [form, setForm] = useState(filled.form);
  // What a person wrote stands until the form changes again.
  const [written, setWritten] = useState(start);
  const [into, setInto] = useState(repeated || filled.namespace);
  const yaml = written ?? writeYaml(form);
  const running = useQuery(jobsQuery).data?.items.filter((one) => one.running) ?? [];
  const isLocal = useQuery(whoamiQuery).data?.mode === "local";
  const command = writeCommand(into, isLocal);
  const navigate = useNavigate();
  const submit = useMutation({
    mutationFn: () => postJson<CaptureAnswer>("/requests", { yaml, namespace: into }),
    onSuccess: (answer) => {
      if (answer) void navigate({ to: "/requests/$namespace/$uid", params: { namespace: answer.namespace, uid: answer.uid } });
    },
  });
  const check = useMutation({ mutationFn: () => postJson<CaptureCheck>("/requests/check", { yaml, namespace: into }) });
  const changed = () => {
    check.reset();
    submit.reset();
  };
  const rows = Math.min(28, Math.max(10, yaml.split("\n").length));
  return (
    <form
      className="capture-form"
      // What is written by hand needs no field.
      noValidate={written !== undefined}
      onSubmit={(event) => {
        event.preventDefault();
        check.reset();
        submit.mutate();
      }}
    >
      {start === undefined && (
        <CaptureFields
          form={form}
          namespace={into}
          running={running}
          onPick={({ namespace, kind, name }) => {
            setForm({ ...form, target: "workload", kind, name });
            setInto(namespace);
            setWritten(undefined);
            changed();
          }}
          onChange={(next) => {
            setForm(next);
            setWritten(undefined);
            changed();
          }}
        />
      )}
      <div>
        <div className="row">
          <label htmlFor="capture-yaml">The same as YAML</label>
          <CopyButton text={yaml} label="Copy the YAML" />
        </div>
        <textarea
          id="capture-yaml"
          className="code"
          value={yaml}
          rows={rows}
          maxLength={65_536}
          spellCheck={false}
          onChange={(event) => {
            setWritten(event.target.value);
            changed();
          }}
        />
        <div className="row">
          <span className="quiet">Saved as capture.yaml, the same by command:</span> <code>{command}</code> <CopyButton text={command} label="Copy the command" />
        </div>
      </div>
      <div className="row">
        <label>
          Namespace <input value={into} maxLength={63} placeholder="that of the YAML" onChange={(event) => { setInto(event.target.value.trim()); changed(); }} />
        </label>
        <button type="button" disabled={check.isPending} onClick={() => check.mutate()}>
          {check.isPending ? "Checking…" : "Check"}
        </button>
        {mayCapture && (
          <button type="submit" className="primary" disabled={submit.isPending}>
            {submit.isPending ? "Asking…" : "Ask for the capture"}
          </button>
        )}
      </div>
      {!mayCapture && (
        <p className="quiet">
          You cannot ask for captures here. Save the YAML as capture.yaml, then run the command above{isLocal && <> beside <code>fleetprof up</code></>}.
        </p>
      )}
      {check.data && (
        <p role="status" className="good">
          {capital(check.data.message)} <span className="quiet">Checked by: {check.data.checked_by}.</span>
        </p>
      )}
      {(submit.error ?? check.error) && <Failed error={submit.error ?? check.error} />}
    </form>
  );
}
