"""The cost of thousands of ranks for a hub, counted in calls: it grows with the ranks and not with their square."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import RankState
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.sidecars.messages import parse_message
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from harness.hub.scripted_sidecar import make_process, make_request
from harness.memory_store import MemoryStore

EACH = 8
FEW, MANY = 160, 640
STATES = (pb.ARMED, pb.STARTED, pb.WRITTEN)
MOST_PER_EVENT = 200


class Link:
    """A stream that keeps what it was to send."""

    def __init__(self) -> None:
        self.sent: list[pb.HubMessage] = []

    def send(self, message: pb.HubMessage) -> None:
        self.sent.append(message)

    def close(self, why: str) -> None:
        pass


async def count_calls(work: Callable[[], Awaitable[object]]) -> int:
    """Calls of functions of ours while `work` is awaited, in this thread."""
    calls = 0

    def note(frame: FrameType, kind: str, _: object) -> None:
        nonlocal calls
        calls += kind == "call" and "fleetprof_" in frame.f_code.co_filename

    sys.setprofile(note)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return calls


async def begin(ranks: int) -> tuple[Hub, str, list[SidecarRecord]]:
    """A hub with a capture of that many ranks that are asked."""
    hub = Hub(store=MemoryStore(), settings=HubSettings(write_interval_ns=3600 * 10**9, gather_ns=0))
    records, links = [], []
    for number in range(ranks // EACH):
        link = Link()
        processes = [make_process(rank, world_size=ranks) for rank in range(number * EACH, (number + 1) * EACH)]
        records.append(hub.sessions.connect(make_hello(number, processes), link))
        links.append(link)
    uid = (await hub.submit(make_request(), "team", fail_fast=False)).uid
    async with asyncio.timeout(30):
        while not any(message.WhichOneof("body") == "arm" for message in links[-1].sent):
            await asyncio.sleep(0.01)
    return hub, uid, records


def make_hello(number: int, processes: list[pb.Process], held: Any = ()) -> pb.Hello:
    identity = pb.Identity(
        namespace="team",
        pod_name=f"pod-{number}",
        workload=pb.Workload(api_version="batch/v1", kind="Job", name="llama"),
    )
    return pb.Hello(protocol_version=1, sidecar_id=f"s{number}", identity=identity, processes=processes, held=held)


async def end(hub: Hub, uid: str) -> None:
    await hub.cancel(uid, hurry=True)
    for task in hub.captures.tasks.values():
        task.cancel()
    await hub.close()


async def cost_of_events(ranks: int) -> float:
    hub, uid, records = await begin(ranks)

    async def tell() -> None:
        for state in STATES:
            for record in records:
                for process in record.processes.values():
                    event = pb.CaptureEvent(
                        capture_id=uid, process_id=process.process_id, rank=process.rank, state=state
                    )
                    await hub.sessions.receive(
                        record, parse_message(pb.SidecarMessage(event=event).SerializeToString())
                    )
                    await asyncio.sleep(0)  # the next one comes from another stream

    calls = await count_calls(tell)
    await end(hub, uid)
    return calls / (ranks * len(STATES))


async def cost_of_coming_back(ranks: int) -> float:
    """All sidecars dial again while the capture runs."""
    hub, uid, records = await begin(ranks)

    async def reconnect() -> None:
        for number, record in enumerate(records):
            held = [
                pb.CaptureEvent(capture_id=uid, process_id=p.process_id, rank=p.rank, state=pb.ARMED)
                for p in record.processes.values()
            ]
            hub.sessions.connect(make_hello(number, list(record.processes.values()), held), Link())
            await asyncio.sleep(0)

    calls = await count_calls(reconnect)
    await end(hub, uid)
    return calls / ranks


async def cost_of_a_deadline(ranks: int) -> float:
    """Sidecars are lost, all at once, and their lines given up."""
    hub, uid, records = await begin(ranks)
    for record in records:
        assert record.link is not None
        hub.sessions.disconnect(record, record.link)

    async def give_up() -> None:
        capture = hub.captures.find(uid)
        await hub.cancel(uid, hurry=True)
        async with asyncio.timeout(30):
            while any(entry.state is not RankState.FAILED for entry in capture.ledger.entries):
                await asyncio.sleep(0.01)

    calls = await count_calls(give_up)
    await end(hub, uid)
    return calls / ranks


@pytest.mark.parametrize("cost", [cost_of_events, cost_of_coming_back, cost_of_a_deadline])
async def test_a_rank_costs_the_same_among_many(cost: Callable[[int], Awaitable[float]]) -> None:
    few, many = await cost(FEW), await cost(MANY)
    assert many <= 1.2 * few + 1, f"{few:.1f} calls of ours for one of {FEW} ranks, {many:.1f} for one of {MANY}"
    assert many <= MOST_PER_EVENT


async def test_a_look_at_many_ranks_makes_only_lines_that_changed() -> None:
    hub, uid, records = await begin(MANY)
    capture = hub.captures.find(uid)
    await capture.refresh()
    assert len(capture.status().ranks) == MANY
    first = next(iter(records[0].processes.values()))

    async def tell_and_look() -> None:
        event = pb.CaptureEvent(capture_id=uid, process_id=first.process_id, rank=first.rank, state=pb.ARMED)
        await hub.sessions.receive(records[0], pb.SidecarMessage(event=event))
        assert capture.status().ranks[0].state == pb.ARMED

    calls = await count_calls(tell_and_look)
    assert calls < MANY / 2
    await end(hub, uid)
