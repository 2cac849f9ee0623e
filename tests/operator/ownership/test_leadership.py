"""The holder of a Lease, and the time at which another may take it: over a scripted API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fleetprof_api.process.address import parse_host_port
from fleetprof_operator.ownership import leadership as module
from fleetprof_operator.ownership.leadership import Deposed, Leadership
from fleetprof_operator.ownership.lease import (
    DURATION_S,
    LOST_S,
    RENEW_S,
    TRY_S,
    Holder,
    ObservedLease,
    build_claim,
    is_free,
    lease_path,
    look,
)
from harness.kubernetes.scripted_cluster import ScriptedCluster

A = Holder("pod-a", "system/fleetprof", "10.0.0.1:8443")
B = Holder("pod-b", "system/fleetprof", "10.0.0.2:8443")
STRANGER = Holder("pod-c", "elsewhere/fleetprof", "10.0.0.3:8443")
S = 10**9


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.0)
    monkeypatch.setattr(module, "SOON_S", 0.0)


def lease(holder: Holder | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"metadata": {"resourceVersion": "1"}}
    if holder is not None:
        claim = build_claim(body, holder, 0)
        body = {"metadata": {**body["metadata"], **claim["metadata"]}, "spec": claim["spec"]}
    return body


def serve(*namespaces: str, **held: Holder) -> ScriptedCluster:
    leases = {lease_path(namespace): lease() for namespace in namespaces}
    return ScriptedCluster(leases | {lease_path(namespace): lease(holder) for namespace, holder in held.items()})


def holder_of(cluster: ScriptedCluster, namespace: str) -> str | None:
    found: str | None = cluster.objects[lease_path(namespace)].get("spec", {}).get("holderIdentity")
    return found


@asynccontextmanager
async def running(*leaders: Leadership) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(leader.run()) for leader in leaders]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def pass_some_rounds() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("holder", "unchanged_s", "free"),
    [
        (None, 0, True),
        (A, 0, True),  # the same pod's process before its restart
        (Holder("pod-a", "elsewhere/fleetprof", ""), 0, False),  # a pod of that name in another release
        (B, 0, False),
        (B, DURATION_S - 1, False),
        (B, DURATION_S, True),
    ],
)
def test_a_lease_is_free_when_nobody_renews_it(holder: Holder | None, unchanged_s: int, free: bool) -> None:
    body = lease(holder)
    observed = look(body, ObservedLease(), 5 * S)
    again = look(body, observed, (5 + unchanged_s) * S)
    assert is_free(body, A, again, (5 + unchanged_s) * S) == free


def test_a_renewal_counts_from_when_it_is_seen() -> None:
    before = look(lease(B), ObservedLease(), 5 * S)
    renewed = lease(B)
    renewed["spec"] |= build_claim(renewed, B, 3 * S)["spec"]
    assert look(renewed, before, 9 * S).since_ns == 9 * S


async def test_of_two_processes_one_serves_and_the_other_knows_where() -> None:
    cluster = serve("kube-system")
    first, second = Leadership(cluster, ["kube-system"], A), Leadership(cluster, ["kube-system"], B)
    async with running(first, second):
        await pass_some_rounds()
        assert [leader.held.is_set() for leader in (first, second)] == [True, False]
        assert (second.first_hub(), second.find_obstacle()) == (parse_host_port(A.hub), "")


async def test_what_is_let_go_is_taken_at_once() -> None:
    cluster = serve("kube-system")
    first, second = Leadership(cluster, ["kube-system"], A), Leadership(cluster, ["kube-system"], B)
    async with running(first):
        await first.held.wait()
        async with running(second):
            await pass_some_rounds()
            assert not second.held.is_set()
    async with running(second):
        await first.let_go()
        await second.held.wait()
    assert holder_of(cluster, "kube-system") == B.identity


async def test_another_release_is_named_with_what_to_do() -> None:
    late = Leadership(serve(**{"kube-system": STRANGER}), ["kube-system"], A)
    async with running(late):
        await pass_some_rounds()
        assert (late.held.is_set(), late.first_hub()) == (False, None)
        assert "the release elsewhere/fleetprof serves here: uninstall one of the two" in late.find_obstacle()


async def test_who_finds_another_in_its_place_serves_no_more() -> None:
    cluster = serve("kube-system")
    first = Leadership(cluster, ["kube-system"], A)
    async with running(first) as (task,):
        await first.held.wait()
        cluster.objects[lease_path("kube-system")] = lease(B)
        with pytest.raises(Deposed, match="pod-b of system/fleetprof holds the Lease"):
            await task
    await first.let_go()
    assert holder_of(cluster, "kube-system") == B.identity


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
async def test_who_cannot_renew_serves_no_more_before_another_may(monkeypatch: pytest.MonkeyPatch, hangs: bool) -> None:
    assert LOST_S + TRY_S + RENEW_S <= DURATION_S
    cluster = serve("kube-system")
    first = Leadership(cluster, ["kube-system"], A)
    monkeypatch.setattr(module, "TRY_S", 0.01)
    async with running(first) as (task,):
        await first.held.wait()
        cluster.is_away, cluster.hangs = not hangs, hangs
        await pass_some_rounds()
        assert not task.done()  # it may be back in time
        monkeypatch.setattr(module, "LOST_S", 0.02)
        with pytest.raises(Deposed, match="could not be renewed, and others may serve"):
            await task
    assert holder_of(cluster, "kube-system") == A.identity
    cluster.is_away = cluster.hangs = False
    await first.let_go()
    assert holder_of(cluster, "kube-system") == A.identity  # which is not its own to free any more


async def test_a_lease_that_an_uninstall_has_removed_is_nobody_s_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = serve("kube-system")
    first = Leadership(cluster, ["kube-system"], A)
    monkeypatch.setattr(module, "LOST_S", 0.0)
    async with running(first) as (task,):
        await first.held.wait()
        del cluster.objects[lease_path("kube-system")]
        await pass_some_rounds()
        assert not task.done()


async def test_two_releases_that_share_a_namespace_do_not_wait_for_each_other() -> None:
    cluster = serve("a", "b", "c")
    first, second = Leadership(cluster, ["b", "a"], A), Leadership(cluster, ["c", "b"], STRANGER)
    async with running(second, first):
        await pass_some_rounds()
        assert sorted((first.held.is_set(), second.held.is_set())) == [False, True]


async def test_a_lease_that_is_not_there_is_said() -> None:
    late = Leadership(serve(), ["kube-system"], A)
    async with running(late):
        await pass_some_rounds()
        assert late.find_obstacle() == "the Lease fleetprof in kube-system: it is not there; the chart makes it"
