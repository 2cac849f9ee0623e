"""`fleetprof inject`: any manifest in, the same with sidecars out."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleetprof_cli.manifests import InvalidManifest, find_pods, read_manifests, write_manifests
from hypothesis import given
from hypothesis import strategies as st

CA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
POD_SPEC = "{containers: [{name: train, image: x}]}"
JOB = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: llama, creationTimestamp: null}}
spec:
  template: {{spec: {POD_SPEC}}}
"""
CRON_JOB = f"""\
kind: CronJob
apiVersion: batch/v1
metadata: {{name: nightly}}
spec: {{schedule: "0 3 * * *", jobTemplate: {{spec: {{template: {{metadata: null, spec: {POD_SPEC}}}}}}}}}
"""
TORCH_JOB = f"""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: two}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {{spec: {POD_SPEC}}}}}
    Worker: {{replicas: 3, template: {{spec: {POD_SPEC}}}}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1}]}\n"
POD = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {POD_SPEC}\n"
LIST = f"apiVersion: v1\nkind: List\nitems: [{{apiVersion: v1, kind: Pod, metadata: {{name: q}}, spec: {POD_SPEC}}}]\n"


@pytest.fixture
def inject(fleetprof: Any, tmp_path: Path) -> Any:
    def run(text: str, *more: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "ca.crt").write_text(CA)
        (tmp_path / "in.yaml").write_text(text)
        result: subprocess.CompletedProcess[str] = fleetprof(
            "inject", "-f", str(tmp_path / "in.yaml"), "--ca-file", str(tmp_path / "ca.crt"), *more, **options
        )
        return result

    return run


@pytest.mark.parametrize(
    ("text", "pods", "workload"),
    [
        (JOB, 1, "batch/v1/Job/llama"),
        (CRON_JOB, 1, "batch/v1/CronJob/nightly"),
        (TORCH_JOB, 2, "kubeflow.org/v1/PyTorchJob/two"),
        (POD, 1, None),
        (LIST, 1, None),
        ("---\n".join([SERVICE, JOB, POD]), 2, None),
    ],
)
def test_every_pod_of_a_manifest_gets_its_sidecar(inject: Any, text: str, pods: int, workload: str | None) -> None:
    result = inject(text)
    assert (result.returncode, result.stderr) == (0, "")
    documents = list(yaml.safe_load_all(result.stdout))
    assert [d["kind"] for d in documents] == [d["kind"] for d in yaml.safe_load_all(text)]
    found = [pod for document in documents for item in document.get("items", [document]) for pod in find_pods(item)]
    assert len(found) == pods
    for pod in found:
        (sidecar,) = pod["spec"]["initContainers"]
        assert sidecar["image"].startswith("ghcr.io/fleetprof/sidecar:")
        assert pod["metadata"]["annotations"]["fleetprof.io/hub-ca"] == CA
        values = {entry["name"]: entry.get("value") for entry in sidecar["env"]}
        if workload:
            assert values["FLEETPROF_WORKLOAD"] == workload


def test_a_second_time_changes_nothing(inject: Any) -> None:
    once = inject(JOB).stdout
    again = inject(once)
    assert again.stdout == once
    assert "Job/llama: left as it is: it has the sidecar already" in again.stderr


def test_what_has_no_pod_stays_as_it_is(inject: Any) -> None:
    documents = list(yaml.safe_load_all(inject(SERVICE + "---\n" + POD).stdout))
    assert documents[0] == yaml.safe_load(SERVICE)


def test_stdin_and_json(fleetprof: Any, tmp_path: Path, environment: dict[str, str]) -> None:
    import json
    import sys

    (tmp_path / "ca.crt").write_text(CA)
    command = [sys.executable, "-m", "fleetprof_cli.main", "inject", "-f", "-", "-o", "json"]
    result = subprocess.run(
        [*command, "--ca-file", str(tmp_path / "ca.crt"), "--hub", "hub.x:1", "--image", "i:2"],
        input=JOB,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (job,) = json.loads(result.stdout)["items"]
    (sidecar,) = job["spec"]["template"]["spec"]["initContainers"]
    assert sidecar["image"] == "i:2"
    assert {"name": "FLEETPROF_HUB", "value": "hub.x:1"} in sidecar["env"]


def test_a_pod_that_is_left_alone_is_printed_with_the_reason_beside(inject: Any) -> None:
    text = POD.replace("{name: p}", "{name: p, labels: {fleetprof.io/inject: 'false'}}")
    result = inject(text)
    assert yaml.safe_load(result.stdout) == yaml.safe_load(text)
    assert "Pod/p: left as it is: its label fleetprof.io/inject is false" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not YAML"),
        ("- a\n", "document 1: is no Kubernetes object"),
        ("kind: 3\n", "document 1: is no Kubernetes object"),
        (SERVICE, "no pod and no pod template"),
        ("", "no pod and no pod template"),
        ("kind: Pod\nspec: {containers: [{name: a, env: 7}]}\n", "Kubernetes would refuse its pod"),
    ],
)
def test_what_is_no_manifest_is_named(inject: Any, text: str, message: str) -> None:
    result = inject(text)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_the_authority_is_needed_and_must_be_one(fleetprof: Any, inject: Any, tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(POD)
    result = fleetprof("inject", "-f", str(tmp_path / "in.yaml"))
    assert result.returncode == 2
    assert "kubectl get secret fleetprof-tls" in result.stderr
    (tmp_path / "key.pem").write_text(CA + "-----BEGIN PRIVATE KEY-----\n")
    result = inject(POD, "--ca-file", str(tmp_path / "key.pem"))
    assert result.returncode == 2
    assert "private key" in result.stderr


def test_values_stay_what_kubernetes_reads() -> None:
    text = "kind: X\ndate: 2026-11-21\nmode: 0644\ntext: |\n  a\n  b\n"
    (document,) = read_manifests(text)
    assert document["date"] == "2026-11-21"
    assert document["mode"] == 0o644
    assert "text: |\n" in write_manifests([document])
    assert read_manifests(write_manifests([document])) == [document]


def test_a_web_of_aliases_ends() -> None:
    lines = ["kind: X", "a0: &a0 [1]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    (document,) = read_manifests("\n".join(lines))
    assert list(find_pods(document)) == []


@given(st.text())
def test_no_text_is_an_error_of_ours(text: str) -> None:
    try:
        documents = read_manifests(text)
    except InvalidManifest:
        return
    for document in documents:
        list(find_pods(document))
