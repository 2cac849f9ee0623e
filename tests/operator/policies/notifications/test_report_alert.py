"""The alert that holds a report's link: what a real Alertmanager has of it, and that it triggers nothing."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleetprof_operator.policies.notifications.delivery import Delivery
from fleetprof_operator.policies.notifications.notification import FIELDS
from fleetprof_operator.policies.notifications.report_alert import ReportAlerts, build_alert
from fleetprof_operator.policies.triggers.alerts import read_alerts
from harness.prometheus import find_program, run_alertmanager

VALUES = dict.fromkeys(FIELDS, "") | {
    "namespace": "team",
    "workload": "Job/llama",
    "policy": "starved",
    "result": "Complete",
    "headline": "It waits for data.",
    "link": "https://fleetprof/r/1",
    "request": "starved-1",
}


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[str]:
    with run_alertmanager(tmp_path, {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.prometheus
async def test_alertmanager_shows_it_beside_the_alerts_of_the_job(alertmanager: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "alertmanager").write_text(f"{alertmanager}/\n")
    assert await ReportAlerts(secret).send(VALUES)
    words = ["alert", "query", "workload=llama", f"--alertmanager.url={alertmanager}", "-o", "json"]
    (alert,) = json.loads(subprocess.run([find_program("amtool"), *words], capture_output=True, check=True).stdout)
    assert alert["labels"] == {
        "alertname": "FleetprofReport",
        "severity": "info",
        "namespace": "team",
        "kind": "Job",
        "workload": "llama",
        "policy": "starved",
        "request": "starved-1",
    }
    assert alert["annotations"]["report"] == alert["generatorURL"] == "https://fleetprof/r/1"
    assert alert["annotations"]["description"] == "Complete. It waits for data."


def test_it_brings_about_no_capture() -> None:
    (alert,) = json.loads(build_alert(VALUES, 0))
    assert read_alerts(json.dumps({"version": "4", "alerts": [{"status": "firing", **alert}]}).encode()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("alertmanager", ""),
        ("alertmanager", "file:///etc/passwd"),
        ("alertmanager", "http://127.0.0.1:1"),
        ("alertmanager-ca.crt", "no certificate"),
        ("alertmanager-ca.crt", "# Autorité\n-----BEGIN CERTIFICATE-----"),
    ],
)
async def test_what_cannot_be_told_is_given_up(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert not await ReportAlerts(tmp_path, Delivery(0.001)).send(VALUES)
    assert not await ReportAlerts(None).send(VALUES)
