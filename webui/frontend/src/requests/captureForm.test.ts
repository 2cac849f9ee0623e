import { describe, expect, test } from "vitest";
import { type CaptureForm, EMPTY_FORM, fillForm, writeCommand, writeYaml } from "./captureForm";

const spec = (changes: Partial<CaptureForm>) => writeYaml({ ...EMPTY_FORM, name: "llama", ...changes }).split("spec:\n")[1];

describe("the form's YAML", () => {
  test("is a whole request", () => {
    expect(writeYaml({ ...EMPTY_FORM, name: "llama" })).toBe(
      "apiVersion: fleetprof.io/v1alpha1\nkind: ProfileRequest\nmetadata:\n  generateName: capture-\nspec:\n  target:\n" +
        "    workload:\n      apiVersion: batch/v1\n      kind: Job\n      name: llama\n  window:\n    iterations: 5\n",
    );
  });
  test.each<[Partial<CaptureForm>, string]>([
    [{ kind: "Unheard" }, 'apiVersion: ""\n      kind: Unheard'],
    [{ kind: "PyTorchJob" }, "apiVersion: kubeflow.org/v1\n      kind: PyTorchJob"],
    [{ target: "labels", labels: "team=vision, stage=on" }, 'matchLabels:\n        team: vision\n        stage: "on"'],
    [{ target: "labels", labels: " " }, "matchLabels: {}"],
    [{ window: "milliseconds", length: "2000" }, "durationMillis: 2000"],
    [{ ranks: "every", rankValue: "8" }, "ranks:\n    every: 8"],
    [{ ranks: "list", rankValue: "0, 8 x 16" }, "ranks:\n    list: [0, 8, 16]"],
    [{ collect: ["Shapes", "Stacks"] }, "collect: [Shapes, Stacks]"],
    [{ name: "a: b\n- c" }, 'name: "a: b\\n- c"'],
    [{ name: "null" }, 'name: "null"'],
    [{ length: "five" }, "iterations: five"],
  ])("%j", (changes, part) => {
    expect(spec(changes)).toContain(part);
  });
  test.each([
    ["team-a/PyTorchJob/llama", "team-a", "PyTorchJob", "llama"],
    ["team-a/Job", "", "Job", ""],
    [undefined, "", "Job", ""],
  ])("%s fills it", (job, namespace, kind, name) => {
    const filled = fillForm(job);
    expect([filled.namespace, filled.form.kind, filled.form.name]).toEqual([namespace, kind, name]);
  });
  test("goes to kubectl", () => {
    expect(writeCommand("team-a", false)).toBe("kubectl create -n team-a -f capture.yaml");
    expect(writeCommand("", false)).toBe("kubectl create -f capture.yaml");
    expect(writeCommand("team-a", true)).toBe("fleetprof capture -f capture.yaml");
  });
});
