"""A job that hangs is told with its rank: a real Prometheus and Alertmanager, both triggers of a policy, real pods.

a rank hangs → the rule fires → the policy asks for stacks, once → the verdict is in its status → the webhook is told
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.places import BINARIES
from scene.alerting import NotifiedPod, run_alerting
from scene.api import Api, wait_until
from scene.installation import NAMESPACE, Installation
from scene.request import API
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch, pytest.mark.prometheus, pytest.mark.helm]

KIND = "ProfilePolicy"
POLICY = {
    "selector": {"matchLabels": {"app": "hung"}},
    "triggers": [
        {"name": "alerted", "type": "Alert", "alert": {"names": ["FleetprofJobStalled"]}},
        {"name": "stands", "type": "Stalled", "stalled": {"forSeconds": 60}},
    ],
    "budget": {"minimumAgeSeconds": 0},
    "template": {"spec": {"window": {"iterations": 5}}},
}
HELD = "it sleeps (train.py:"
WAITS = " for it. Its node is "


@pytest.fixture
def hung(api: Api, team: str) -> Iterator[Training]:
    """A job of two ranks that moves still."""
    job = Training(api, team, "hung", ranks_per_pod=2)
    try:
        job.start()
        job.await_steps()
        yield job
    finally:
        job.remove()


def test_a_job_that_hangs_is_told_with_its_rank(
    api: Api,
    store: StoreInCluster,
    team: str,
    installation: Installation,
    webhook: NotifiedPod,
    hung: Training,
    tmp_path: Path,
) -> None:
    def status() -> dict[str, Any]:
        return (api.get(KIND, "explain-hangs", team, API) or {}).get("status") or {}

    def triggers() -> set[str]:
        return {each["trigger"] for each in status().get("captures", []) + status().get("suppressions", [])}

    metadata = {"name": "explain-hangs", "namespace": team}
    api.apply({"apiVersion": API, "kind": KIND, "metadata": metadata, "spec": POLICY})
    try:
        with run_alerting(api, NAMESPACE, tmp_path) as prometheus:
            wait_until(lambda: prometheus.read_rate(hung.name) > 0, "the rate of the job")
            hung.hang()
            wait_until(
                lambda: "FleetprofJobStalled" in {each["alertname"] for each in prometheus.firing()},
                lambda: f"the alert\n{prometheus.explain()}",
            )
            wait_until(lambda: triggers() == {"alerted", "stands"}, lambda: f"both triggers: {status()}")
        (text,) = wait_until(webhook.texts, lambda: f"the notification\n{installation.logs()}")
        (capture,) = status()["captures"]
        verdict = capture["headline"]
        assert verdict.startswith("Rank 1 has not entered all_reduce ")
        assert HELD in verdict
        assert WAITS in verdict
        assert verdict in text
        request = api.get("ProfileRequest", capture["request"], team, API)
        assert request is not None
        assert set(request["spec"]["capture"]) == {"stacks"}
        assert request["status"]["headline"]["topFinding"] == verdict

        answer = ask(api, store, tmp_path, "stacks", f"job/{hung.name}", "-n", team, "-o", "json")
        assert answer.returncode == 0, answer.stderr
        (sample,) = json.loads(answer.stdout)["samples"]
        assert (sample["verdict"]["cause"], sample["verdict"]["ranks"]) == ("sleeps", [1])
        assert sample["verdict"]["place"]["function"] == "strike"
    finally:
        api.delete(KIND, "explain-hangs", team, api=API)
        api.kubectl("delete", "profreq", "--all", "-n", team, timeout_s=180)


def ask(api: Api, store: StoreInCluster, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`kubectl fleetprof` with the store's credentials."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FLEETPROF_", "AWS_", "KUBE"))}
    mine = {
        "KUBECONFIG": str(api.kubeconfig),
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}",
        "AWS_ACCESS_KEY_ID": store.access_key,
        "AWS_SECRET_ACCESS_KEY": store.secret_key,
    }
    command = ["kubectl", "fleetprof", *words, "--s3-endpoint", store.client().meta.endpoint_url]
    return subprocess.run(command, env=clean | mine, capture_output=True, text=True, timeout=300, check=False)
