"""Twenty hostile pods change nothing in what is told of another's job, and are kept and counted once."""

import asyncio
from collections.abc import Callable

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.hub import Hub, split_workload
from fleetprof_operator.hub.settings import SECOND_NS
from fleetprof_operator.hub.sidecars.holdings import TELEMETRY_BYTES
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from fleetprof_operator.hub.telemetry import history
from fleetprof_operator.hub.telemetry.exposition import MOST_RANKS, MOST_WORKLOADS
from fleetprof_operator.hub.telemetry.fair_shares import share_fairly
from fleetprof_operator.hub.telemetry.history import TelemetryHistory
from fleetprof_operator.hub.telemetry.snapshot import take_snapshot
from harness.memory_store import MemoryStore

RANKS = 40
PODS = 20


class Silent:
    """The way down to a sidecar that does not listen."""

    def send(self, message: pb.HubMessage) -> None:
        """Nobody hears it."""

    def close(self, why: str) -> None:
        """Nothing to end."""


def hello_of(namespace: str, pod: str, sidecar: str, workload: str, ranks: int, *, labels: bool = False) -> pb.Hello:
    identity = pb.Identity(namespace=namespace, pod_name=pod, pod_uid=f"uid-{pod}", node_name="node")
    identity.workload.api_version, identity.workload.kind, identity.workload.name = "batch/v1", "Job", workload
    if labels:
        identity.labels["fleetprof.io/rank-metrics"] = "true"
    processes = [
        pb.Process(process_id=f"p{rank}", role=pb.TRAINER, rank=rank, world_size=ranks, device_kind="cuda")
        for rank in range(ranks)
    ]
    return pb.Hello(protocol_version=1, sidecar_id=sidecar, identity=identity, processes=processes)


def report_of(ranks: int) -> pb.SidecarMessage:
    measured = [pb.RankTelemetry(process_id=f"p{rank}", iteration_ns=10**8) for rank in range(ranks)]
    return pb.SidecarMessage(telemetry=pb.Telemetry(ranks=measured))


async def dial(hub: Hub, hello: pb.Hello) -> SidecarRecord:
    await hub.name_workload(hello.identity)
    record = hub.sessions.connect(hello, Silent(), proved_pod_uid=hello.identity.pod_uid)
    await hub.sessions.receive(record, report_of(len(hello.processes)))
    return record


async def attack(hub: Hub) -> None:
    """Each pod dials again and again, as another sidecar with another workload."""
    for turn in range(30):
        for pod in range(PODS):
            name = f"evil-{pod}"
            await dial(hub, hello_of("evil", name, f"s-{pod}-{turn}", f"w-{pod}-{turn}", RANKS, labels=True))


@pytest.fixture
def make_hub() -> Callable[..., Hub]:
    return lambda **more: Hub(store=MemoryStore(), clock=lambda: 10**18, **more)


def series_of(snapshot: object) -> set[tuple[str, str]]:
    return {
        (sample.labels["namespace"], sample.labels["workload"])
        for metric in snapshot.collect()  # type: ignore[attr-defined]
        for sample in metric.samples
    }


@pytest.mark.attack
async def test_a_pod_that_comes_again_as_another_keeps_one_set_of_rows(make_hub: Callable[..., Hub]) -> None:
    hub = make_hub()
    await dial(hub, hello_of("team", "mine", "s", "llama", 8))
    await attack(hub)
    boards = hub.telemetry.boards()
    assert sum(board.rank_count for board in boards) == PODS * RANKS + 8
    assert len(boards) == PODS + 1
    assert hub.count_kept_bytes() > TELEMETRY_BYTES * (PODS * RANKS + 8)
    assert ("team", "llama") in series_of(await take_snapshot(hub.telemetry))
    await hub.close()


@pytest.mark.attack
async def test_a_pod_has_the_workload_that_owns_it_whatever_it_says(make_hub: Callable[..., Hub]) -> None:
    async def find(namespace: str, name: str, uid: str) -> str:
        await asyncio.sleep(0)
        return {"mine": "batch/v1/Job/llama", "mallory": "batch/v1/Job/own"}.get(name, "")

    hub = make_hub(find_workload=find)
    for pod in ("mine", "mallory", "nobody-s"):
        await dial(hub, hello_of("team", pod, f"s-{pod}", "llama", 2))
    kept = {(board.kind, board.name): board.rank_count for board in hub.telemetry.boards()}
    assert kept == {("Job", "llama"): 2, ("Job", "own"): 2, ("Pod", "nobody-s"): 2}
    named = {record.identity.pod_name: record.identity.HasField("workload") for record in hub.sidecars("team")}
    assert named == {"mine": True, "mallory": True, "nobody-s": False}
    await hub.close()


@pytest.mark.attack
async def test_where_not_all_can_be_told_each_namespace_has_its_share(make_hub: Callable[..., Hub]) -> None:
    hub = make_hub()
    for number in range(MOST_WORKLOADS + 50):
        await dial(hub, hello_of("evil", f"e{number}", f"e{number}", f"w{number}", 4, labels=True))
    for namespace in ("a", "b"):
        await dial(hub, hello_of(namespace, f"{namespace}-pod", namespace, "small", 1, labels=True))
    snapshot = await take_snapshot(hub.telemetry)
    assert {("a", "small"), ("b", "small")} <= series_of(snapshot)
    assert len(series_of(snapshot)) == MOST_WORKLOADS
    ranks = {
        (sample.labels["namespace"], sample.labels["workload"], sample.labels["rank"])
        for metric in snapshot.collect()
        for sample in metric.samples
        if "rank" in sample.labels and sample.name.startswith("fleetprof_rank_")
    }
    assert {("a", "small", "0"), ("b", "small", "0")} <= ranks
    assert len(ranks) <= MOST_RANKS
    await hub.close()


@pytest.mark.attack
async def test_a_full_history_makes_room_for_who_has_little_in_it(
    make_hub: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_WORKLOADS", 10)
    hub, day = make_hub(), TelemetryHistory()
    for number in range(20):
        await dial(hub, hello_of("evil", f"e{number}", f"e{number}", f"w{number}", 2))
    day.take(hub.telemetry.workloads(), 10**18)
    await dial(hub, hello_of("team", "mine", "s", "llama", 1))
    day.take(hub.telemetry.workloads(), 10**18 + SECOND_NS)
    assert [one.name for one in day.write("team").workloads] == ["llama"]
    assert len(day.write("evil").workloads) == 9
    await hub.close()


@pytest.mark.parametrize(
    ("items", "most", "kept"),
    [
        (["a1", "a2", "b1"], 3, ["a1", "a2", "b1"]),
        (["a1", "a2", "a3", "b1"], 2, ["a1", "b1"]),
        (["a1", "a2", "a3", "b1", "b2"], 4, ["a1", "a2", "b1", "b2"]),
        (["a1", "b1", "c1"], 2, ["a1", "b1"]),
        ([], 2, []),
    ],
)
def test_shares(items: list[str], most: int, kept: list[str]) -> None:
    assert share_fairly(items, lambda item: item[0], most) == kept


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("batch/v1/Job/llama", ("batch/v1", "Job", "llama")),
        ("v1/ReplicationController/old", ("v1", "ReplicationController", "old")),
        ("", ("", "", "")),
    ],
)
def test_a_workload_in_its_parts(text: str, parts: tuple[str, str, str]) -> None:
    assert split_workload(text) == parts
