"""`kubectl fleetprof capture` speaks at once of a target whose pods cannot answer."""

from typing import Any

import pytest
from fleetprof_api.pods import INJECTED_ANNOTATION, WITHOUT_SIDECAR_ANNOTATION
from fleetprof_api.request import Target
from fleetprof_cli.kubernetes.connection import Connection
from fleetprof_cli.kubernetes.target_pods import require_injected
from fleetprof_cli.messages import Failure
from harness.kubernetes.memory_cluster import MemoryCluster

TARGET = Target.model_validate({"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}})
LABELS = {"batch.kubernetes.io/job-name": "llama"}


def pod(name: str, phase: str, *, injected: bool = True, left: bool = False) -> dict[str, Any]:
    annotations = {INJECTED_ANNOTATION: "0.1.0"} if injected else {}
    annotations |= {WITHOUT_SIDECAR_ANNOTATION: "no image"} if left else {}
    return {"metadata": {"name": name, "labels": LABELS, "annotations": annotations}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        ([], "has no pod in namespace team"),
        ([pod("a", "Succeeded"), pod("b", "Succeeded")], "has ended: all of its pods are over (2 Succeeded)"),
        ([pod("a", "Succeeded"), pod("b", "Failed")], "has ended: all of its pods are over (1 Failed, 1 Succeeded)"),
        ([pod("a", "Running", injected=False)], "none of the 1 pods of Job/llama has the fleetprof sidecar"),
        ([pod("a", "Running", left=True)], "none of the 1 pods of Job/llama has the fleetprof sidecar"),
        # What ran before with a sidecar says nothing of what runs now.
        ([pod("a", "Failed"), pod("b", "Running", injected=False)], "none of the 1 pods of Job/llama has"),
        ([pod("a", "Failed"), pod("b", "Pending")], ""),
        ([pod("a", "Running")], ""),
    ],
)
async def test_a_capture_that_nobody_can_answer_fails_at_once(pods: list[dict[str, Any]], says: str) -> None:
    cluster = MemoryCluster()
    for each in pods:
        cluster.put(f"/api/v1/namespaces/team/pods/{each['metadata']['name']}", each)
    connection = Connection(cluster, "team", None)  # type: ignore[arg-type]
    if not says:
        await require_injected(connection, TARGET, "job/llama")
        return
    with pytest.raises(Failure) as raised:
        await require_injected(connection, TARGET, "job/llama")
    assert says in str(raised.value)
