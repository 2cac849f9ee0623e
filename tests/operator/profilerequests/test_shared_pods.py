"""One watch of a namespace's pods for all who ask: each finds its own, and learns of its own changes alone."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_api.request import Selector, WorkloadReference
from fleetprof_operator.hub.planning.target_pods import find_missing
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.kubernetes.namespace_pods import SharedPods
from fleetprof_operator.kubernetes.workloads import PodQuery
from fleetprof_operator.profilerequests import target_pods as module
from fleetprof_operator.profilerequests.target_pods import TargetPodsWatch
from harness.kubernetes.memory_cluster import MemoryCluster

PODS = "/api/v1/namespaces/team/pods"
IN_A_OR_B = {"key": "app", "operator": "In", "values": ["a", "b"]}
QUERIES = {
    "a": PodQuery(selector=Selector.model_validate({"matchLabels": {"app": "a"}})),
    "a, and tier 1": PodQuery(selector=Selector.model_validate({"matchLabels": {"app": "a", "tier": "1"}})),
    "a or b": PodQuery(selector=Selector.model_validate({"matchExpressions": [IN_A_OR_B]})),
    "by name": PodQuery(name="two"),
}


def pod(name: str, *, owners: list[Any] | None = None, **labels: str) -> dict[str, Any]:
    metadata = {"uid": name, "name": name, "labels": labels, "creationTimestamp": "2026-11-28T03:00:00Z"}
    return {"metadata": metadata | {"resourceVersion": "1", "ownerReferences": owners or []}}


def share(cluster: MemoryCluster) -> SharedPods:
    return SharedPods(cast("Cluster", cluster))


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0)


async def test_each_query_finds_its_own_as_pods_come_change_and_go() -> None:
    cluster = MemoryCluster()
    cluster.put(f"{PODS}/one", pod("one", app="a", tier="1"))
    shared = share(cluster)
    with ExitStack() as uses:
        pods = [uses.enter_context(shared.of("team")) for _ in QUERIES][-1]
        for query in QUERIES.values():
            uses.enter_context(pods.use(query))

        def found() -> dict[str, list[str]]:
            return {what: sorted(p.name for p in pods.find(query)) for what, query in QUERIES.items()}

        await until(lambda: cluster.watched() == 1)
        assert found() == {"a": ["one"], "a, and tier 1": ["one"], "a or b": ["one"], "by name": []}
        version = pods.version(QUERIES["by name"])
        cluster.put(f"{PODS}/two", pod("two", app="b"))
        await until(lambda: pods.version(QUERIES["by name"]) != version)
        assert found() == {"a": ["one"], "a, and tier 1": ["one"], "a or b": ["one", "two"], "by name": ["two"]}
        version = pods.version(QUERIES["a"])
        cluster.put(f"{PODS}/one", pod("one", app="a", tier="2"))
        await until(lambda: pods.version(QUERIES["a"]) != version)
        assert found()["a"] == ["one"]
        assert found()["a, and tier 1"] == []
        await cluster.delete(f"{PODS}/two")
        await until(lambda: found()["by name"] == [])
        assert cluster.watched() == 1
    await shared.close()


async def test_strangers_that_cannot_be_followed_are_no_trouble_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BURST_S", 0.0)
    workflow = {"apiVersion": "argoproj.io/v1", "kind": "Workflow", "name": "w", "uid": "w", "controller": True}
    target = WorkloadReference(api_version="apps/v1", kind="Deployment", name="llama")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama", "uid": "d", "controller": True}
    cluster, query = MemoryCluster(), PodQuery(owner=target)
    cluster.refusals["GET", "/apis/argoproj.io/v1"] = ApiRefused(403, "Forbidden", "no")
    cluster.put(f"{PODS}/stranger", pod("stranger", owners=[workflow]))
    shared = share(cluster)
    with shared.of("team") as pods, pods.use(query):
        watch = TargetPodsWatch(pods, query, "Deployment/llama")
        running = asyncio.create_task(watch.run())
        await until(lambda: bool(watch.current().doubt))
        missing = find_missing(watch.current(), (), "Deployment/llama")
        assert missing.reason == "NothingMatched"
        assert (
            "whose some pods of the namespace are cannot be told: the operator may not read Workflow w"
            in missing.message
        )
        cluster.put(f"{PODS}/llama-0", pod("llama-0", owners=[owner]))
        await until(lambda: set(watch.current().pods) == {"llama-0"})
        assert find_missing(watch.current(), (), "Deployment/llama").reason == "NotInjected"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await shared.close()
