"""Two operators on a real API server: two replicas of one release, and two releases of which each has its requests."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from fleetprof_operator.kubernetes.cluster import Cluster, make_client
from fleetprof_operator.ownership.request_ownership import CLUSTER_FINALIZER, NAMESPACE_FINALIZER
from fleetprof_operator.release import Release, release
from harness.kubernetes.request_ground import RequestGround, condition
from harness.kubernetes.severable_way import SeverableWay
from harness.ports import find_ports
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config

pytestmark = pytest.mark.cluster


def replica(identity: str, *listen: str) -> list[str]:
    (port,) = find_ports(1)
    address = f"127.0.0.1:{port}"
    return ["--identity", identity, "--listen", ",".join((f"hub={address}", *listen)), "--advertise", address]


async def call_receiver(address: str, token: str) -> tuple[int, dict[str, int]]:
    """As Alertmanager does."""
    labels = {"alertname": "Low", "namespace": "team", "kind": "Job", "workload": "llama"}
    alerts = {"version": "4", "alerts": [{"status": "firing", "labels": labels}]}
    async with aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {token}"}
        async with http.post(f"http://{address}/alerts", json=alerts, headers=headers) as answer:
            return answer.status, await answer.json()


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_a_replica_that_stands_by_takes_the_capture_over(grounds: list[RequestGround], killed: bool) -> None:
    (first,) = grounds
    first.add_lease(first.namespace)
    standing_by = first.beside("second", *first.arguments, *replica("second"))
    first.arguments += replica("first")
    first.start_operator()
    await first.until(lambda: "serves" in first.log(), "the first to serve")
    grounds.append(standing_by)
    standing_by.start_operator()
    await first.until(lambda: not standing_by.find_obstacle(), "the other to stand by")

    uid = first.add_pod("llama-0")
    sidecar = await standing_by.add_sidecar("llama-0", uid, first.process(0, 1))  # which hands it on
    first.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "STARTED")
    await first.until(lambda: first.status().get("ranks", {}).get("armed") == 1, "the order")
    if killed:
        first.kill_operator()
    else:
        assert first.end_operator() == 0
    await first.until(lambda: "serves" in standing_by.log(), "the other to take over")
    await first.until(lambda: "the hub listens" in standing_by.log(), "its hub")

    await standing_by.reconnect()
    await sidecar.deliver(first.puts, arm)
    status = await first.until_finished()
    assert condition(status) == ("True", "Complete")
    assert status["owner"] == "fleetprof-system/fleetprof"


async def test_a_replica_that_is_cut_off_serves_no_more_when_another_does(grounds: list[RequestGround]) -> None:
    (first,) = grounds
    first.add_lease(first.namespace)
    standing_by = first.beside("second", *first.arguments, *replica("second"))
    first.arguments += replica("first")
    async with SeverableWay(first.api) as way:
        first.start_operator(way.kubeconfig())
        await first.until(lambda: "the hub listens" in first.log(), "the first to serve")
        first_port = int(first.arguments[-1].rpartition(":")[2])
        grounds.append(standing_by)
        standing_by.start_operator()
        await first.until(lambda: not standing_by.find_obstacle(), "the other to stand by")
        way.is_severed = True
        await first.until(lambda: "this process serves" in standing_by.log(), "the other to serve")
        assert "this process ends, because another serves" in first.log()
        with pytest.raises(ConnectionRefusedError):  # before the other began: two hubs would order the same ranks
            await asyncio.open_connection("127.0.0.1", first_port)
        await first.until(lambda: not first.is_running(), "the first to be over")


async def test_a_replica_that_stands_by_hands_alertmanagers_calls_on(
    grounds: list[RequestGround], tmp_path: Path
) -> None:
    (first,) = grounds
    first.add_lease(first.namespace)
    token_file, (port,) = tmp_path / "token", find_ports(1)
    token_file.write_text("t" * 32)
    first.arguments += ["--alerts-token-file", str(token_file)]
    standing_by = first.beside("second", *first.arguments, *replica("second", f"alerts=127.0.0.2:{port}"))
    first.arguments += replica("first", f"alerts=127.0.0.1:{port}")
    first.start_operator()
    await first.until(lambda: "serves" in first.log(), "the first to serve")
    grounds.append(standing_by)
    standing_by.start_operator()
    await first.until(lambda: not standing_by.find_obstacle(), "the other to stand by")

    assert await call_receiver(f"127.0.0.2:{port}", "t" * 32) == (200, {"taken": 1})
    assert (await call_receiver(f"127.0.0.2:{port}", "wrong"))[0] == 401  # it is the receiver that decides


async def test_of_two_releases_each_has_its_requests_and_an_uninstall_touches_its_own(
    grounds: list[RequestGround], leases: str
) -> None:
    (narrow,) = grounds
    narrow.add_lease(narrow.namespace)
    narrow.add_lease(leases)
    narrow.arguments += ["--owner", f"{narrow.namespace}/narrow"]
    wide = narrow.beside("wide", "--leases", leases, "--owner", "fleetprof-system/wide")
    wide.namespace = leases  # any namespace without a release of its own
    grounds.append(wide)
    for ground in (narrow, wide):
        ground.start_operator()
        ground.ask(target={"selector": {"matchLabels": {"app": "not-there-yet"}}})
    for ground, owner, finalizer in (
        (narrow, f"{narrow.namespace}/narrow", NAMESPACE_FINALIZER),
        (wide, "fleetprof-system/wide", CLUSTER_FINALIZER),
    ):
        status = await ground.until_state("Waiting")
        assert (status["owner"], ground.made()["metadata"]["finalizers"]) == (owner, [finalizer])

    await _release(wide, Release("fleetprof-system/wide", [], "fleetprof-system"))

    assert condition(wide.status()) == ("False", "Cancelled")
    assert condition(narrow.status()) == ("Unknown", "Waiting")
    assert narrow.made()["metadata"]["finalizers"] == [NAMESPACE_FINALIZER]

    await _release(narrow, Release(f"{narrow.namespace}/narrow", [narrow.namespace], "fleetprof-system"))
    assert condition(narrow.status()) == ("False", "Cancelled")


async def test_a_second_release_for_the_same_says_who_serves_and_touches_nothing(grounds: list[RequestGround]) -> None:
    (first,) = grounds
    first.add_lease(first.namespace)
    first.start_operator()
    second = first.beside("second", *first.arguments, "--owner", "elsewhere/fleetprof", "--identity", "second")
    grounds.append(second)
    await first.until(lambda: "serves" in first.log(), "the first to serve")
    second.start_operator()
    first.ask(target={"selector": {"matchLabels": {"app": "not-there-yet"}}})
    assert (await first.until_state("Waiting"))["owner"] == "fleetprof-system/fleetprof"
    obstacle = await first.until(lambda: second.find_obstacle(), "its obstacle")
    assert "the release fleetprof-system/fleetprof serves here: uninstall one of the two" in obstacle
    await _release(first, Release("elsewhere/fleetprof", [first.namespace], "fleetprof-system"))
    assert condition(first.status()) == ("Unknown", "Waiting")


async def _release(ground: RequestGround, ours: Release) -> None:
    configuration = Configuration()
    await load_kube_config(str(ground.api.kubeconfig()), client_configuration=configuration)
    cluster = Cluster(make_client(configuration, "tests"))
    try:
        async with asyncio.timeout(60):
            await release(cluster, ours)
    finally:
        await cluster.close()
