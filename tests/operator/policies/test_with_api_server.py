"""A policy on a real API server: Alertmanager's calls in, ProfileRequests and Events out, through a kill."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from harness.kubernetes.request_ground import RequestGround, condition

pytestmark = pytest.mark.cluster

TOKEN = "0123456789abcdef-told"


def call(ground: RequestGround, alerts: list[dict[str, Any]]) -> int:
    body = json.dumps({"version": "4", "alerts": alerts}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{ground.ports['alerts']}/alerts", body, {"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        taken: int = json.load(answer)["taken"]
        return taken


def alert(ground: RequestGround, **labels: str) -> dict[str, Any]:
    of = {"alertname": "FleetprofLowUtilization", "namespace": ground.namespace, "pod": "llama-0"}
    return {"status": "firing", "labels": of | labels, "startsAt": "2026-11-21T09:45:12Z"}


async def test_a_flood_of_alerts_makes_one_request_through_a_kill(api: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    ground = RequestGround(api, tmp_path, "--alerts-token-file", str(tmp_path / "token"))
    ground.start_operator()
    try:
        policy = {
            "apiVersion": "fleetprof.io/v1alpha1",
            "kind": "ProfilePolicy",
            "metadata": {"name": "starved"},
            "spec": {
                "triggers": [{"name": "told", "type": "Alert"}],
                "budget": {"minimumAgeSeconds": 0},
                "template": {"spec": {"window": {"iterations": 5}, "canary": "Never"}},
            },
        }
        ground.must("POST", ground.path("profilepolicies"), policy)
        sidecar = await ground.add_rank(0, 1)
        exempt = ground.add_pod("quiet-0", labels={}, annotations={"fleetprof.io/alerts": "off"})
        quiet = await ground.add_sidecar("quiet-0", exempt, ground.process(0, 1))
        await quiet.disconnect()
        quiet.identity.workload.name = "quiet"
        await quiet.connect(ground.ports["hub"])

        def status() -> dict[str, Any]:
            found: dict[str, Any] = ground.must("GET", ground.path("profilepolicies", "starved")).get("status") or {}
            return found

        await ground.until(lambda: condition(status(), "Ready") == ("True", "Watching"), "the policy to be watched for")
        flood = [alert(ground, severity=str(n), instance=f"i{n % 50}") for n in range(9_998)]
        taken = await asyncio.to_thread(call, ground, [*flood, alert(ground, pod="quiet-0"), alert(ground, pod="gone")])
        assert taken == 3
        await ground.until(lambda: status().get("captures"), "the capture to be written down")
        ground.kill_operator()
        ground.start_operator()
        await ground.reconnect()
        await asyncio.to_thread(call, ground, flood)  # Alertmanager sends again what still fires
        await ground.until(lambda: status().get("suppressed", 0) >= 2, "both to be said")
        (request,) = ground.must("GET", ground.path("profilerequests"))["items"]
        assert request["metadata"]["labels"] == {"fleetprof.io/policy": "starved"}
        reasons = {s["workload"]: s["reason"] for s in status()["suppressions"]}
        assert reasons == {"Job/llama": "AlreadyAnswered", "Job/quiet": "Exempt"}
        assert await ground.deliver(sidecar) == request["metadata"]["uid"]
        await ground.until(lambda: status()["captures"][0].get("completionTime"), "the end of the capture")
        assert status()["captured"] == 1
        # The end is told beside the status, not before it.
        await ground.until(lambda: "CaptureEnded" in [reason for _, reason in ground.events()], "the end to be told")
        events = [reason for _, reason in ground.events()]
        assert events.count("Captured") == events.count("MadeByPolicy") == events.count("CaptureEnded") == 1
        assert 'fleetprof_workload_exempt{kind="Job"' in ground.scrape()
    finally:
        await ground.close()
