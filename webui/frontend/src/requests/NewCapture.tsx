// The form of a new capture is the request itself: the YAML that the command line and `kubectl apply` take as well. The
// service checks it, and names each wrong field.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { postJson } from "@/api/client";
import type { CaptureAnswer } from "@/api/models";
import { requestQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Failed, Loading } from "@/parts/States";

const EXAMPLE = `apiVersion: fleetprof.io/v1alpha1
kind: ProfileRequest
metadata:
  generateName: capture-
spec:
  target:
    workload: {apiVersion: batch/v1, kind: Job, name: train}
  window:
    iterations: 5
`;

interface Props {
  /** NAMESPACE/UID of the request that is asked for again. */
  repeat: string | undefined;
  mayCapture: boolean;
  onClose: () => void;
}

export function NewCapture({ repeat, mayCapture, onClose }: Props) {
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
        <Form start={before.data?.yaml || EXAMPLE} namespace={namespace} mayCapture={mayCapture} />
      )}
    </section>
  );
}

function Form({ start, namespace, mayCapture }: { start: string; namespace: string; mayCapture: boolean }) {
  const [yaml, setYaml] = useState(start);
  const navigate = useNavigate();
  const submit = useMutation({
    mutationFn: () => postJson<CaptureAnswer>("/requests", { yaml, namespace }),
    onSuccess: (answer) => {
      if (answer) void navigate({ to: "/requests/$namespace/$uid", params: { namespace: answer.namespace, uid: answer.uid } });
    },
  });
  const rows = Math.min(28, Math.max(10, yaml.split("\n").length + 1));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit.mutate();
      }}
    >
      <label htmlFor="capture-yaml" className="quiet">
        ProfileRequest
      </label>
      <textarea id="capture-yaml" className="code" value={yaml} rows={rows} maxLength={65_536} spellCheck={false} onChange={(event) => setYaml(event.target.value)} />
      <div className="row">
        {mayCapture ? (
          <button type="submit" className="primary" disabled={submit.isPending}>
            {submit.isPending ? "Asking…" : "Ask for the capture"}
          </button>
        ) : (
          <p className="quiet">
            This service takes no captures. Save the YAML as capture.yaml, then run <code>fleetprof capture -f capture.yaml</code>, or on
            Kubernetes <code>kubectl create -f capture.yaml</code>.
          </p>
        )}
        <CopyButton text={yaml} label="Copy the YAML" />
      </div>
      {submit.error && <Failed error={submit.error} />}
    </form>
  );
}
