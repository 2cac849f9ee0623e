"""The closed loop with a real Prometheus and Alertmanager: a rule of the chart fires, one request is made and told of.

The figures of two starved jobs stand in for their telemetry, whose own way to /metrics is tested where it is made.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fleetprof_operator.web.connections import Connections
from harness.kubernetes.chart import S3, render
from harness.kubernetes.request_ground import RequestGround
from harness.prometheus import run_alertmanager, run_prometheus

pytestmark = [pytest.mark.cluster, pytest.mark.prometheus]

TOKEN = "0123456789abcdef-told"


class Outside:
    """The target that is scraped, and the webhook that is told."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.activity = 0.2
        self.exemptions: list[str] = []
        self.notifications: list[str] = []
        application = web.Application()
        application.router.add_get("/metrics", self._answer)
        application.router.add_post("/hook", self._hear)
        self.server = Connections(application, None, what="outside")

    async def _answer(self, _: web.Request) -> web.Response:
        lines = [*self.exemptions]
        for job in ("llama", "quiet"):
            of = f'namespace="{self.namespace}",workload="{job}",kind="Job"'
            lines += [
                f"fleetprof_workload_start_timestamp_seconds{{{of}}} 1",
                f'fleetprof_workload_gpu_sm_active_ratio{{aggregation="mean",{of}}} {self.activity}',
            ]
        return web.Response(text="\n".join(lines) + "\n")

    async def _hear(self, request: web.Request) -> web.Response:
        self.notifications.append(json.loads(await request.read())["text"])
        return web.Response()


def chart_groups() -> list[dict[str, Any]]:
    """The chart's rules about jobs, looked at every second, and without waiting."""
    rule = render((*S3, "rules.enabled=true", "rules.job=fleetprof")).one("PrometheusRule", "fleetprof")
    groups = [group for group in rule["spec"]["groups"] if "workloads" in group["name"]]
    for group in groups:
        group["interval"] = "1s"
        for each in group["rules"]:
            each.pop("for", None)
    return groups


async def test_a_starved_job_is_captured_once_and_people_are_told(api: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    ground = RequestGround(
        api,
        tmp_path,
        "--alerts-token-file",
        str(tmp_path / "token"),
        "--notifications",
        str(tmp_path / "notifications"),
    )
    outside = Outside(ground.namespace)
    await outside.server.start("127.0.0.1", 0)
    (tmp_path / "notifications").mkdir()
    (tmp_path / "notifications/url").write_text(f"http://127.0.0.1:{outside.server.port}/hook")
    ground.start_operator()
    alertmanager = {
        "route": {"receiver": "fleetprof", "group_wait": "1s", "group_interval": "1s", "repeat_interval": "5s"},
        "receivers": [
            {
                "name": "fleetprof",
                "webhook_configs": [
                    {
                        "url": f"http://127.0.0.1:{ground.ports['alerts']}/alerts",
                        "send_resolved": False,
                        "http_config": {"authorization": {"credentials": TOKEN}},
                    }
                ],
            }
        ],
    }
    try:
        await _go_round(ground, outside, alertmanager, tmp_path)
    finally:
        await ground.close()
        await outside.server.close()


async def _go_round(ground: RequestGround, outside: Outside, alertmanager: dict[str, Any], folder: Path) -> None:
    def read() -> dict[str, Any]:
        found: dict[str, Any] = ground.must("GET", ground.path("profilepolicies", "starved")).get("status") or {}
        return found

    def reasons() -> dict[tuple[str, str], int]:
        return {(s["workload"], s["reason"]): s["count"] for s in read().get("suppressions", [])}

    sidecar = await ground.add_rank(0, 1)
    uid = ground.add_pod("quiet-0", labels={}, annotations={"fleetprof.io/alerts": "off"})
    quiet = await ground.add_sidecar("quiet-0", uid, ground.process(0, 1))
    await quiet.disconnect()
    quiet.identity.workload.name = "quiet"
    await quiet.connect(ground.ports["hub"])
    await ground.until(lambda: 'workload="quiet"' in ground.scrape(), "the exemption to be read")
    # In one scrape with the figures, as where both are the operator's: a scrape that comes too late takes both away.
    outside.exemptions += [
        line for line in ground.scrape().splitlines() if line.startswith("fleetprof_workload_exempt{")
    ]
    spec = {
        "triggers": [
            {"name": "told", "type": "Alert", "alert": {"names": ["FleetprofLowUtilization"]}},
            {"name": "idle", "type": "Alert", "alert": {"names": ["FleetprofIdleGpusHeld"]}},
        ],
        "budget": {"minimumAgeSeconds": 0},
        "template": {"spec": {"window": {"iterations": 5}, "canary": "Never"}},
    }
    kind = {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfilePolicy", "metadata": {"name": "starved"}}
    ground.must("POST", ground.path("profilepolicies"), {**kind, "spec": spec})
    ports = [outside.server.port, ground.ports["http"]]
    with run_alertmanager(folder, alertmanager) as alerts_port:
        prometheus = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alerts_port}"]}]}]},
            "scrape_configs": [
                {
                    "job_name": "fleetprof",
                    "honor_labels": True,
                    "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
                }
            ],
        }
        with run_prometheus(folder, prometheus, chart_groups()):
            captured = await ground.deliver(sidecar)  # the request came, and its one rank is captured
            await ground.until(lambda: outside.notifications, "the notification")
            # It fires on: Alertmanager says so again and again.
            await ground.until(lambda: reasons().get(("Job/llama", "AlreadyAnswered"), 0) >= 2, "repetitions")
            outside.activity = 0.001
            await ground.until(lambda: ("Job/llama", "Cooldown") in reasons(), "the other alert to be suppressed")
    (request,) = ground.must("GET", ground.path("profilerequests"))["items"]
    assert request["metadata"]["uid"] == captured
    (capture,) = read()["captures"]
    assert capture["cause"] == "the alert FleetprofLowUtilization fires: A job uses little of its GPUs."
    assert "completionTime" in capture
    assert outside.notifications == [
        f"Job/llama in {ground.namespace} was captured because {capture['cause']}. "
        f"{capture.get('headline', '')} {capture.get('reportURL', '')}"
    ]
    assert {workload for workload, _ in reasons()} == {"Job/llama"}, "the exempt job has no alert"
