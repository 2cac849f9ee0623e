"""The metrics of the captures that policies made."""

from typing import Any

from fleetprof_operator.policies.exemption import Exemptions
from fleetprof_operator.policies.policy_metrics import PolicyMetrics
from harness.policies.engine_scene import Scene
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families


def list_reports(scene: Scene) -> list[tuple[dict[str, str], float]]:
    """Labels and values of the reports' metric, as it is scraped."""
    cluster: Any = scene.api
    registry = CollectorRegistry()
    registry.register(PolicyMetrics(scene.engine, Exemptions(cluster)))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return [
        (dict(sample.labels), sample.value)
        for family in families
        if family.name == "fleetprof_policy_report_timestamp_seconds"
        for sample in family.samples
    ]


async def test_the_metric_of_a_report_carries_the_reports_id_also_after_a_restart() -> None:
    scene = Scene("llama")
    scene.tell("llama")
    await scene.turn()
    assert list_reports(scene) == [], "it has not ended yet"
    scene.end_requests()
    for _ in range(4):
        await scene.turn()
    (name,) = scene.api.requests
    labels = {
        "namespace": "team", "kind": "Job", "workload": "llama", "policy": "starved", "request": name,
        "uid": f"uid-{name}", "result": "Complete",
    }  # fmt: skip
    assert list_reports(scene) == [(labels, 1_800_000_000.0)]
    scene.start()
    for _ in range(4):
        await scene.turn()
    assert list_reports(scene) == [(labels, 1_800_000_000.0)]
