"""An alert arrives with its explanation: a real Prometheus and Alertmanager, a job that starves, whatever is killed.

a job starves → the rule fires → the policy makes one ProfileRequest → its report names the cause → the webhook is told
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scene.alerting import NotifiedPod, run_alerting
from scene.api import Api, wait_until
from scene.installation import ADDRESS, NAMESPACE, Installation
from scene.request import API, JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch, pytest.mark.prometheus, pytest.mark.helm]

KIND = "ProfilePolicy"
POLICY = {
    "selector": {"matchLabels": {"watched": "yes"}},
    "triggers": [{"name": "slow", "type": "Alert", "alert": {"names": ["FleetprofLowIterationRate"]}}],
    "budget": {"minimumAgeSeconds": 0},
    "template": {"spec": {"window": {"iterations": 5}, "canary": "Never", "limits": {"maxSlowdownPercent": 0}}},
}


@pytest.fixture
def jobs(api: Api, team: str) -> Iterator[tuple[Training, Training]]:
    """One that starves, and one that starves as well and wants no alerts; both train."""
    options: dict[str, Any] = {"ranks_per_pod": 1, "pod_labels": {"watched": "yes"}}
    starved = Training(api, team, "starved", **options)
    exempt = Training(api, team, "exempt", pod_annotations={"fleetprof.io/alerts": "off"}, **options)
    try:
        starved.start()
        exempt.start()
        starved.await_steps()
        exempt.await_steps()
        yield starved, exempt
    finally:
        starved.remove()
        exempt.remove()


def test_a_starved_job_is_captured_once_and_explained_whatever_is_killed(
    api: Api,
    store: StoreInCluster,
    team: str,
    installation: Installation,
    webhook: NotifiedPod,
    jobs: tuple[Training, Training],
    tmp_path: Path,
) -> None:
    starved, _ = jobs

    def status() -> dict[str, Any]:
        return (api.get(KIND, "explain", team, API) or {}).get("status") or {}

    def reasons() -> set[tuple[str, str]]:
        return {(each["workload"], each["reason"]) for each in status().get("suppressions", [])}

    metadata = {"name": "explain", "namespace": team}
    api.apply({"apiVersion": API, "kind": KIND, "metadata": metadata, "spec": POLICY})
    try:
        with run_alerting(api, NAMESPACE, tmp_path) as prometheus:
            # What is as it should be must have been seen, or nothing can be far below it.
            wait_until(lambda: prometheus.read_rate("starved") > 0, "the rate of the job")
            for job in jobs:
                job.starve()
            prometheus.stop()
            prometheus.start()
            wait_until(lambda: status().get("captures"), lambda: f"the alert to be answered\n{prometheus.explain()}")
            installation.kill_operator()
            store.go_down()
            (capture,) = status()["captures"]
            request = JobRequest(api, store, team, capture["request"], starved.name)
            wait_until(lambda: api.get("ProfileRequest", request.name, team, API), "the request")
            store.come_back()
            request.await_end()
            assert request.outcome() == ("True", "Complete"), request.describe()
            (text,) = wait_until(webhook.texts, lambda: f"the notification\n{installation.logs()}")
            uid = request.get()["metadata"]["uid"]
            assert text.endswith(f"{ADDRESS}/reports/{team}/{uid}")
            assert "the next batch" in text

            starved.feed()
            wait_until(lambda: not prometheus.firing(), "the end of the alert")
            starved.starve()
            wait_until(lambda: ("Job/starved", "Cooldown") in reasons(), lambda: f"the second firing: {status()}")
        (left,) = [each for each in status()["suppressions"] if each["reason"] == "Cooldown"]
        assert "spec.budget.cooldownSeconds is 3600" in left["message"]
        assert {workload for workload, _ in reasons()} == {"Job/starved"}, "nobody alerts about the exempt job"
        assert (status()["captured"], len(status()["captures"])) == (1, 1)
        made = api.list("ProfileRequest", team, API, "fleetprof.io/policy=explain")
        assert [each["metadata"]["name"] for each in made] == [request.name]
        assert len(webhook.texts()) == 1
    finally:
        api.delete(KIND, "explain", team, api=API)
        api.kubectl("delete", "profreq", "-n", team, "-l", "fleetprof.io/policy=explain", timeout_s=180)
