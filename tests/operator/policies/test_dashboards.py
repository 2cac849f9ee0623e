"""Every question of the dashboards, asked of a real Prometheus that scrapes a real operator with a captured job."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from harness.hub.scripted_sidecar import ScriptedSidecar, make_process
from harness.hub.telemetry_reports import rank, report
from harness.kubernetes.chart import S3, render
from harness.kubernetes.request_ground import RequestGround
from harness.prometheus import run_prometheus

pytestmark = [pytest.mark.cluster, pytest.mark.prometheus, pytest.mark.helm]

BOARDS = sorted((Path(__file__).parents[3] / "charts/fleetprof/dashboards").glob("*.json"))
# No webhook runs here.
EMPTY = {("fleetprof.json", "Pods at the webhook")}
Question = tuple[str, str, str]


def list_questions(namespace: str) -> Iterator[Question]:
    """(dashboard, panel, PromQL), with what people choose put in."""
    chosen = {"namespace": namespace, "kind": "Job", "workload": "llama"}

    def choose(text: str) -> str:
        return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], text)

    for path in BOARDS:
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield path.name, panel["title"], choose(target["expr"])
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                selector, _, label = variable["query"].removeprefix("label_values(").removesuffix(")").rpartition(", ")
                yield path.name, f"the choice of {variable['name']}", f"count by ({label}) ({choose(selector)})"


def ask(port: int, query: str) -> list[dict[str, Any]]:
    """The series that answer; fails where Prometheus cannot read the question."""
    address = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        with error:
            pytest.fail(f"{query}: {error.read().decode()}")
    return found


def chart_groups() -> list[dict[str, Any]]:
    """The chart's rules, looked at every second."""
    rule = render((*S3, "rules.enabled=true", "rules.job=fleetprof")).one("PrometheusRule", "fleetprof")
    return [{**group, "interval": "1s"} for group in rule["spec"]["groups"]]


def telemetry(slow_permille: int) -> pb.Telemetry:
    """Every figure that there is, of two ranks of which one is less busy."""
    every: dict[str, Any] = {
        field.name: 700 for field in pb.RankTelemetry.DESCRIPTOR.fields if field.name != "process_id"
    }
    host = pb.HostTelemetry(**{field.name: 700 for field in pb.HostTelemetry.DESCRIPTOR.fields})
    reports = [every | {"gpu_sm_active_permille": permille} for permille in (slow_permille + 100, slow_permille)]
    return report(*(rank(number, **one) for number, one in enumerate(reports)), host=host)


async def add_job(ground: RequestGround, name: str, slow_permille: int, **metadata: Any) -> ScriptedSidecar:
    """A job of two ranks in one pod, which tells its figures."""
    uid = ground.add_pod(f"{name}-0", **metadata)
    devices: dict[str, Any] = {"world_size": 2, "device_kind": "cuda", "device_name": "H100"}
    sidecar = ScriptedSidecar(f"s-{name}", [make_process(n, **devices) for n in (0, 1)], name, ground.namespace)
    sidecar.identity.pod_name, sidecar.identity.pod_uid = f"{name}-0", uid
    ground.sidecars.append(sidecar)
    await sidecar.connect(ground.ports["hub"])
    await sidecar.call.write(pb.SidecarMessage(telemetry=telemetry(slow_permille)))
    return sidecar


async def capture_by_policy(ground: RequestGround) -> None:
    """One job is busy, another is not; a policy captures the one."""
    sidecar = await add_job(ground, "llama", 500)
    spec = {
        "selector": {"matchLabels": {"app": "llama"}},
        "triggers": [{"name": "steady", "type": "SteadyState", "steadyState": {"iteration": 1}}],
        "budget": {"minimumAgeSeconds": 0},
        "template": {"spec": {"window": {"iterations": 5}, "canary": "Never"}},
    }
    kind = {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfilePolicy", "metadata": {"name": "steady"}}
    ground.must("POST", ground.path("profilepolicies"), {**kind, "spec": spec})
    await ground.deliver(sidecar)
    await ground.until(lambda: "fleetprof_policy_report_timestamp_seconds{" in ground.scrape(), "the capture's end")
    await sidecar.call.write(pb.SidecarMessage(telemetry=telemetry(500)))
    await add_job(ground, "quiet", 0, labels={})


async def test_every_panel_has_an_answer(ground: RequestGround, tmp_path: Path) -> None:
    await capture_by_policy(ground)
    target = {"targets": [f"127.0.0.1:{ground.ports['http']}"]}
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "fleetprof", "honor_labels": True, "static_configs": [target]}],
    }
    questions = list(list_questions(ground.namespace))
    assert len(questions) >= 3 * 8, "all dashboards are looked at"
    with run_prometheus(tmp_path, configuration, chart_groups()) as port:

        def find_silent() -> list[Question]:
            return [question for question in questions if not ask(port, question[2]) and question[:2] not in EMPTY]

        try:
            await ground.until(lambda: not find_silent(), "answers")
        except AssertionError:
            pytest.fail(f"no answer to {find_silent()}")
        answered = {question[:2] for question in questions if ask(port, question[2])}
    assert answered & EMPTY == set(), "what has an answer is not among those without"
