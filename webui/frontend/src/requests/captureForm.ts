// What the form of a new capture holds, and the ProfileRequest that it means. Pure; the service checks the document.

export interface CaptureForm {
  target: "workload" | "labels";
  kind: string;
  name: string;
  /** "team=vision, stage=pretrain" */
  labels: string;
  window: "iterations" | "milliseconds";
  length: string;
  ranks: "all" | "every" | "sample" | "list";
  /** N of "every" and "sample"; "0, 8, 16" of "list". */
  rankValue: string;
  collect: readonly string[];
}

export const EMPTY_FORM: CaptureForm = {
  target: "workload",
  kind: "Job",
  name: "",
  labels: "",
  window: "iterations",
  length: "5",
  ranks: "all",
  rankValue: "",
  collect: [],
};

/** Kinds that are offered, with their API version; any kind that owns pods will do in the YAML. */
export const KINDS: Record<string, string> = {
  Job: "batch/v1",
  PyTorchJob: "kubeflow.org/v1",
  TrainJob: "trainer.kubeflow.org/v1alpha1",
  JobSet: "jobset.x-k8s.io/v1alpha2",
  RayJob: "ray.io/v1",
  StatefulSet: "apps/v1",
  Deployment: "apps/v1",
};

/** Each with the part of a report that shows it: what no page shows is not offered. */
export const COLLECT: readonly (readonly [value: string, meaning: string, shown: string])[] = [
  ["Shapes", "shapes of tensors", "What if, and the timeline's events"],
  ["Stacks", "Python stacks", "the timeline's events"],
  ["ModuleTree", "time by module", "Modules"],
  ["DeviceMetrics", "power and clocks of devices", "Samples, and the timeline"],
];

/** The form of a capture of this job, NAMESPACE/KIND/NAME, and its namespace. */
export function fillForm(job: string | undefined): { form: CaptureForm; namespace: string } {
  const [namespace = "", kind = "", ...name] = job?.split("/") ?? [];
  return name.length > 0 ? { form: { ...EMPTY_FORM, kind, name: name.join("/") }, namespace } : { form: EMPTY_FORM, namespace: "" };
}

/** The request as YAML. What is empty is left empty, so that the check names the field. */
export function writeYaml(form: CaptureForm): string {
  const lines = ["apiVersion: fleetprof.io/v1alpha1", "kind: ProfileRequest", "metadata:", "  generateName: capture-", "spec:", "  target:"];
  if (form.target === "workload") {
    const version = scalar(KINDS[form.kind] ?? "");
    lines.push("    workload:", `      apiVersion: ${version}`, `      kind: ${form.kind}`, `      name: ${scalar(form.name)}`);
  } else {
    lines.push("    selector:", "      matchLabels:");
    for (const [key, value] of readLabels(form.labels)) lines.push(`        ${scalar(key)}: ${scalar(value)}`);
    if (readLabels(form.labels).length === 0) lines[lines.length - 1] = "      matchLabels: {}";
  }
  if (form.ranks !== "all") {
    const value = form.ranks === "list" ? `[${readNumbers(form.rankValue).join(", ")}]` : number(form.rankValue);
    lines.push("  ranks:", `    ${form.ranks}: ${value}`);
  }
  lines.push("  window:", `    ${form.window === "iterations" ? "iterations" : "durationMillis"}: ${number(form.length)}`);
  if (form.collect.length > 0) lines.push(`  collect: [${form.collect.join(", ")}]`);
  return `${lines.join("\n")}\n`;
}

/** The command that asks for the same; `namespace` "" for that of the document. On one machine there is no kubectl. */
export function writeCommand(namespace: string, isLocal: boolean): string {
  if (isLocal) return "fleetprof capture -f capture.yaml";
  return `kubectl create${namespace ? ` -n ${namespace}` : ""} -f capture.yaml`;
}

function readLabels(text: string): [string, string][] {
  return text
    .split(/[,\s]+/)
    .filter(Boolean)
    .map((pair) => {
      const [key = "", ...value] = pair.split("=");
      return [key, value.join("=")];
    });
}

function readNumbers(text: string): string[] {
  return text.split(/[,\s]+/).filter((word) => /^\d{1,9}$/.test(word));
}

function number(text: string): string {
  return /^\d{1,9}$/.test(text.trim()) ? text.trim() : scalar(text);
}

// What YAML could read as something else is quoted, as JSON, which YAML holds.
function scalar(text: string): string {
  return /^[A-Za-z][A-Za-z0-9./_-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : JSON.stringify(text);
}
