"""A ProfilePolicy of an installation: it captures a running job once, as often as its triggers fire."""

from typing import Any

import pytest
from scene.api import Api, wait_until
from scene.request import API, JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

KIND = "ProfilePolicy"


def steady(name: str, iteration: int) -> dict[str, Any]:
    return {"name": name, "type": "SteadyState", "steadyState": {"iteration": iteration}}


def test_a_policy_makes_one_capture_of_a_job_and_says_why_there_is_no_second(
    api: Api, store: StoreInCluster, team: str, training: Training
) -> None:
    def status() -> dict[str, Any]:
        found = api.get(KIND, "steady", team, API)
        return (found or {}).get("status") or {}

    def await_one(what: str) -> dict[str, Any]:
        wait_until(lambda: status().get(what), lambda: f"{what} of the policy: {status()}")
        [one] = status()[what]
        found: dict[str, Any] = one
        return found

    api.apply(
        {
            "apiVersion": API,
            "kind": KIND,
            "metadata": {"name": "steady", "namespace": team},
            "spec": {
                "selector": {"matchLabels": {"app": training.name}},
                "triggers": [steady("warm", 1), steady("warmer", 2)],
                "budget": {"minimumAgeSeconds": 0, "concurrent": 1},
                "template": {
                    "spec": {"window": {"iterations": 5}, "canary": "Never", "limits": {"maxSlowdownPercent": 0}}
                },
            },
        }
    )
    try:
        capture, left = await_one("captures"), await_one("suppressions")
        assert (capture["trigger"], left["trigger"], left["reason"]) == ("warm", "warmer", "AlreadyCapturing")
        request = JobRequest(api, store, team, capture["request"], training.name)
        wait_until(lambda: api.get("ProfileRequest", request.name, team, API), "the request")
        request.await_end()
        assert request.outcome() == ("True", "Complete"), request.describe()
        assert request.get()["metadata"]["labels"] == {"fleetprof.io/policy": "steady"}
        wait_until(lambda: await_one("captures").get("completionTime"), lambda: f"the capture's end: {status()}")
        assert (await_one("captures")["result"], status()["captured"]) == ("Complete", 1)
    finally:
        api.delete(KIND, "steady", team, api=API)
        api.kubectl("delete", "profreq", "-n", team, "-l", "fleetprof.io/policy=steady", timeout_s=180)
