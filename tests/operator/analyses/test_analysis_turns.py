"""A namespace's analyses beyond its number wait in order, and other namespaces do not wait."""

import asyncio
import dataclasses
from typing import Any

import pytest
from fleetprof_operator.analyses.analyses import AnalysisBounds, AnalyzerJobFailed, AnalyzerJobs
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from harness.kubernetes.memory_cluster import MemoryCluster

JOBS = "/apis/batch/v1/namespaces/fleetprof-system/jobs"
TEMPLATE: Any = {"spec": {"containers": [{"name": "analyzer"}]}}
BOUNDS = AnalysisBounds(deadline_s=600, max_parallelism=4, max_resources={}, at_a_time_per_namespace=2)


def made(cluster: MemoryCluster) -> list[str]:
    return [path.rpartition("-")[2] for path in cluster.objects if path.startswith(JOBS)]


def end(cluster: MemoryCluster, uid: str) -> None:
    path = f"{JOBS}/fleetprof-report-{uid}"
    job = cluster.objects[path]
    cluster.put(path, job | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})


def order(namespace: str, uid: str) -> AnalysisOrder:
    """For a capture of one rank."""
    return AnalysisOrder(namespace, uid, name=uid, ranks=1, analysis=None)


def make_analyses(cluster: MemoryCluster, bounds: AnalysisBounds = BOUNDS) -> AnalyzerJobs:
    """As the operator makes them."""
    return AnalyzerJobs(
        cluster,  # type: ignore[arg-type]
        "fleetprof-system",
        TEMPLATE,
        bounds,
        on_write=lambda: None,
    )


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.attack
async def test_one_namespace_waits_for_its_turn_and_another_does_not() -> None:
    cluster = MemoryCluster()
    analyses = make_analyses(cluster)
    going = {uid: asyncio.create_task(analyses.analyze(order("team-a", uid))) for uid in ("a", "b", "c", "d")}
    await settle()
    going["x"] = asyncio.create_task(analyses.analyze(order("team-b", "x")))
    await settle()
    assert made(cluster) == ["a", "b", "x"]
    end(cluster, "b")
    await going.pop("b")
    await settle()
    assert made(cluster) == ["a", "b", "x", "c"]
    going["d"].cancel()  # a request that is deleted while it waits
    del going["d"]
    for uid in list(going):
        end(cluster, uid)
    await asyncio.gather(*going.values())
    # After a restart: what has begun is followed at once, however many there are.
    cluster.objects.clear()
    for uid in ("a", "b", "c"):
        labels = {"fleetprof.io/request-uid": uid}
        cluster.put(
            f"{JOBS}/fleetprof-report-{uid}", {"metadata": {"name": f"fleetprof-report-{uid}", "labels": labels}}
        )
    again = [asyncio.create_task(analyses.analyze(order("team-a", uid))) for uid in ("a", "b", "c")]
    await settle()
    assert all(analyses.find_capture(f"fleetprof-report-{uid}") is not None for uid in ("a", "b", "c"))
    for uid in ("a", "b", "c"):
        end(cluster, uid)
    await asyncio.gather(*again)
    assert analyses.find_capture("fleetprof-report-a") is None


def ended(cluster: MemoryCluster, command: str, uid: str, at: str, condition: str = "Complete") -> None:
    name = f"fleetprof-{command}-{uid}"
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": at}] if condition else []
    labels = {"fleetprof.io/request-uid": uid}
    document = {"metadata": {"name": name, "labels": labels}, "status": {"conditions": conditions}}
    cluster.put(f"{JOBS}/{name}", document)


@pytest.mark.parametrize(
    ("history", "kept"), [(0, ["g", "h"]), (2, ["c", "g", "h", "new"]), (5, ["a", "b", "c", "g", "h", "new"])]
)
async def test_the_oldest_finished_jobs_go_when_another_has_ended(history: int, kept: list[str]) -> None:
    cluster = MemoryCluster()
    # Complete, Failed, and a request whose second Job goes on: its first one is not touched.
    ended(cluster, "report", "a", "2026-11-21T09:00:01Z")
    ended(cluster, "report", "b", "2026-11-21T09:00:02Z", "Failed")
    ended(cluster, "report", "c", "2026-11-21T09:00:03Z")
    ended(cluster, "summarise", "g", "2026-11-21T08:00:00Z")
    ended(cluster, "merge", "g", "", "")
    ended(cluster, "report", "h", "", "")
    cluster.put(f"{JOBS}/of-somebody-else", {"metadata": {"name": "of-somebody-else"}})
    bounds = dataclasses.replace(BOUNDS, history=history)
    analyses = make_analyses(cluster, bounds)
    ended(cluster, "report", "new", "2026-11-21T10:00:00Z")
    await analyses.analyze(order("team-a", "new"))
    left = {path.rpartition("-")[2] for path in cluster.objects} - {"else"}
    assert sorted(left) == kept
    assert f"{JOBS}/of-somebody-else" in cluster.objects


class HeldPods(MemoryCluster):
    """Its pods are listed when `may_list` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.may_list = asyncio.Event()

    async def list(self, path: str, *words: Any, **more: Any) -> Any:
        if path.endswith("/pods"):
            await self.may_list.wait()
        return await super().list(path, *words, **more)


async def test_a_failed_job_stays_until_its_reason_is_read() -> None:
    cluster = HeldPods()
    bounds = dataclasses.replace(BOUNDS, history=0)
    analyses = make_analyses(cluster, bounds)
    ended(cluster, "report", "bad", "2026-11-21T10:00:00Z", "Failed")
    failing = asyncio.create_task(analyses.analyze(order("team-a", "bad")))
    await settle()
    ended(cluster, "report", "good", "2026-11-21T10:00:01Z")
    await analyses.analyze(order("team-b", "good"))
    assert made(cluster) == ["bad"]
    cluster.may_list.set()
    with pytest.raises(AnalyzerJobFailed):
        await failing
    assert made(cluster) == []
