"""`kubectl fleetprof` on a real cluster: kubectl itself calls it, with the rights of the kubeconfig and of S3."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cluster.places import BINARIES
from scene.api import Api, Object, wait_until
from scene.installation import NAMESPACE
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

Plugin = Callable[..., subprocess.CompletedProcess[str]]


def environment_of(api: Api, home: Path, store: StoreInCluster | None = None) -> dict[str, str]:
    """A user's shell: kubectl, the plug-in beside it, a kubeconfig, S3 credentials."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FLEETPROF_", "AWS_", "KUBE"))}
    mine = {"KUBECONFIG": str(api.kubeconfig), "HOME": str(home), "COLUMNS": "200"}
    mine["PATH"] = f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}"
    if store is not None:
        mine |= {"AWS_ACCESS_KEY_ID": store.access_key, "AWS_SECRET_ACCESS_KEY": store.secret_key}
    return clean | mine


@pytest.fixture
def plugin(api: Api, tmp_path: Path) -> Plugin:
    """Runs `kubectl fleetprof` to its end; `store` lends its credentials."""

    def run(
        *words: str, store: StoreInCluster | None = None, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "fleetprof", *words],
            env=environment_of(api, tmp_path, store),
            input=text,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


def test_one_command_captures_all_ranks_and_others_fetch_what_it_stored(
    training: Training, plugin: Plugin, store: StoreInCluster, tmp_path: Path
) -> None:
    result = plugin("capture", f"job/{training.name}", "-n", training.namespace, "--iterations", "3", "-o", "json")
    assert result.returncode == 0, result.stderr
    request = json.loads(result.stdout)
    assert request["status"]["ranks"] == {"targeted": 4, "armed": 4, "captured": 4, "uploaded": 4, "failed": 0}
    assert "4 of 4 ranks uploaded: Complete" in result.stderr

    name = request["metadata"]["name"]
    local = store.client().meta.endpoint_url
    there = ("-n", training.namespace, "--s3-endpoint", local)
    report = plugin("report", name, "-o", "json", *there, store=store)
    assert report.returncode == 0, report.stderr
    assert [rank["rank"] for rank in json.loads(report.stdout)["ranks"]] == [0, 1, 2, 3]
    assert name in plugin("report", *there, store=store).stdout
    fetched = plugin("traces", name, "-o", str(tmp_path / "got"), *there, store=store)
    assert fetched.returncode == 0, fetched.stderr
    assert len(list((tmp_path / "got").glob("ranks/*/trace.json.gz"))) == 4
    tables = plugin("report", name, "--tables", str(tmp_path / "tables"), *there, store=store)
    assert tables.returncode == 0, tables.stderr
    assert (tmp_path / "tables/ranks.parquet").stat().st_size
    cut = ("--trace-window", "worst", "--ranks", "1,2", "--out", str(tmp_path / "cut.json.gz"))
    window = plugin("report", name, *cut, *there, store=store)
    assert window.returncode == 0, window.stderr
    assert "ranks 1, 2;" in window.stderr
    assert json.loads(gzip.decompress((tmp_path / "cut.json.gz").read_bytes()))["traceEvents"]

    # Without the store's credentials there are still the values of the status.
    headline = plugin("report", name, *there)
    assert headline.returncode == 1, headline.stderr
    assert "this is what the request's status holds" in headline.stderr
    assert "% of the window" in headline.stdout


def test_ctrl_c_takes_a_capture_back_that_runs(training: Training, api: Api, tmp_path: Path) -> None:
    words = ["kubectl", "fleetprof", "capture", f"job/{training.name}", "-n", training.namespace]
    capture = subprocess.Popen(
        [*words, "--duration", "8s"],
        env=environment_of(api, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert capture.stderr is not None
        line = ""
        while "have their order" not in line:
            line = capture.stderr.readline()
            assert line, "the capture ended before any rank had its order"
        os.killpg(capture.pid, signal.SIGINT)
        _, err = capture.communicate(timeout=240)
    finally:
        capture.kill()
        capture.communicate()
    assert capture.returncode == 4, err
    assert "Cancelled" in err


def test_the_doctor_finds_nothing_wrong_with_a_pod_that_is_captured(training: Training, plugin: Plugin) -> None:
    result = plugin("doctor", f"job/{training.name}", "-n", training.namespace, "--exec", "-o", "json")
    checks = json.loads(result.stdout)["checks"]
    assert result.returncode == 0, checks
    found = "\n".join(f"{check['name']}: {check['found']}" for check in checks)
    assert "its sidecar runs" in found
    assert "is set up to ask for captures" in found
    assert "its sidecar is connected to the hub" in found
    assert "pytorch: 2.15" in found


def make_pod(name: str, **labels: str) -> Object:
    """A pod that `restricted` lets in, and that needs no PyTorch."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "train",
        "image": "registry.invalid/train:1",
        "imagePullPolicy": "Never",
        "command": ["sleep", "60"],
        "securityContext": security,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0},
    }


def test_the_doctor_says_why_a_pod_has_no_sidecar(api: Api, team: str, plugin: Plugin) -> None:
    pod = make_pod("opted-out", **{"fleetprof.io/inject": "false"})
    pod["metadata"]["namespace"] = team
    api.create(pod)
    try:
        result = plugin("doctor", "pod/opted-out", "-n", team)
        assert result.returncode == 1
        assert "its label fleetprof.io/inject is false" in result.stdout
        assert "take the label away" in result.stdout
    finally:
        api.delete("Pod", "opted-out", team)


def test_the_doctor_names_an_image_that_cannot_be_pulled(api: Api, team: str, plugin: Plugin, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    manifest = yaml.safe_dump(make_pod("no-image"))
    words = ("--image", "registry.invalid/sidecar:none", "--ca-file", str(tmp_path / "ca.crt"))
    injected = plugin("inject", "-f", "-", *words, text=manifest)
    assert injected.returncode == 0, injected.stderr
    pod = yaml.safe_load(injected.stdout)
    pod["metadata"]["namespace"] = team
    api.create(pod)
    try:
        outputs: list[str] = []

        def named() -> bool:
            outputs[:] = [plugin("doctor", "pod/no-image", "-n", team).stdout]
            return "its sidecar's image cannot be pulled" in outputs[0]

        wait_until(named, lambda: f"the doctor's finding: {outputs}")
        assert "make registry.invalid/sidecar:none reachable" in outputs[0]
    finally:
        api.delete("Pod", "no-image", team)


def test_top_shows_the_ranks_of_a_job_that_lets_them_be_told_and_completes_its_name(
    training: Training, plugin: Plugin, api: Api, tmp_path: Path
) -> None:
    words = ("top", f"job/{training.name}", "-n", training.namespace)
    answers: list[subprocess.CompletedProcess[str]] = []

    def lists_ranks() -> bool:
        answers[:] = [plugin(*words, "-o", "json")]
        return answers[0].returncode == 0

    # Sidecars report every five seconds, and the job may have begun just now.
    wait_until(lists_ranks, lambda: f"the job's figures: {answers[0].stderr}")
    (job,) = json.loads(answers[0].stdout)["workloads"]
    assert (job["kind"], job["name"], len(job["members"])) == ("Job", training.name, 4)
    assert job["figures"]["iterations_per_second"]["mean"] > 0
    lines = plugin(*words).stdout.splitlines()
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["0", "1", "2", "3"]
    command = ["kubectl", "__complete", "fleetprof", "top", "-n", training.namespace, "job/"]
    environment = environment_of(api, tmp_path)
    # An answer that takes more than some seconds is not waited for.
    wait_until(
        lambda: (
            f"job/{training.name}"
            in subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
        ),
        "the job's name to be offered",
    )
    api.kubectl("create", "rolebinding", "topper", "-n", NAMESPACE, "--role=fleetprof-top", "--user=topper")
    proxied = ("get", "services/fleetprof-top:http", "--subresource=proxy")
    token = ("create", "serviceaccounts/fleetprof-top", "--subresource=token")
    for right in (proxied, token):
        for person, may in (("topper", "yes"), ("stranger", "no")):
            review = ("auth", "can-i", *right, "-n", NAMESPACE, f"--as={person}")
            assert api.kubectl(*review, fails=may == "no").split()[0] == may
    raw = f"/api/v1/namespaces/{NAMESPACE}/services/fleetprof-top:http/proxy/figures"
    assert "provide credentials" in api.kubectl("get", "--raw", raw, fails=True)
