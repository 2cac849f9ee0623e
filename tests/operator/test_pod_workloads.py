"""The owner of a pod is that of the API server."""

from typing import Any

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_operator.pod_workloads import PodWorkloads

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "llama-workers-0", "uid": "j", "controller": True}
JOBSET = {"jobset.sigs.k8s.io/jobset-name": "llama"}


class FakeCluster:
    """Has one pod, or fails."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self._answer = answer
        self.paths: list[str] = []

    async def get(self, path: str, *, metadata_only: bool = False) -> dict[str, Any]:
        self.paths.append(path)
        assert metadata_only
        if isinstance(self._answer, Exception):
            raise self._answer
        return {"metadata": self._answer}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"uid": "u", "ownerReferences": [JOB]}, "batch/v1/Job/llama-workers-0"),
        ({"uid": "u", "ownerReferences": [JOB], "labels": JOBSET}, "jobset.x-k8s.io/v1alpha2/JobSet/llama"),
        # Labels that a colleague's pods have.
        ({"uid": "u", "ownerReferences": [JOB | {"name": "own"}], "labels": JOBSET}, "batch/v1/Job/own"),
        ({"uid": "u", "ownerReferences": [JOB | {"name": "llama2"}], "labels": JOBSET}, "batch/v1/Job/llama2"),
        ({"uid": "u", "labels": JOBSET}, ""),
        ({"uid": "u", "ownerReferences": [JOB | {"controller": False}]}, ""),
        # Another pod of the same name.
        ({"uid": "other", "ownerReferences": [JOB]}, ""),
    ],
)
async def test_the_owner_is_what_counts(metadata: dict[str, Any], found: str) -> None:
    cluster = FakeCluster(metadata)
    workloads = PodWorkloads(cluster)  # type: ignore[arg-type]
    for _ in range(2):
        assert await workloads.find("team", "pod", "u") == found
    assert set(cluster.paths) == {"/api/v1/namespaces/team/pods/pod"}
    assert len(cluster.paths) == (1 if metadata["uid"] == "u" else 2)


@pytest.mark.parametrize("error", [ApiUnreachable("away"), ApiRefused(403, "Forbidden", "no"), TimeoutError()])
async def test_where_nobody_can_tell_there_is_none(error: Exception) -> None:
    assert await PodWorkloads(FakeCluster(error)).find("team", "pod", "u") == ""  # type: ignore[arg-type]
