"""The message that is worked on next: heavy ones of one namespace leave room for all else between them."""

import asyncio

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.sidecars.message_weight import weigh_message
from fleetprof_operator.hub.sidecars.pace import HEAVY, StreamPaces

PROCESS = pb.Process(process_id="p" * 60, torch_version="2.15.0")
LIGHT = pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=[PROCESS])).SerializeToString()
LARGE = pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=[PROCESS] * 600)).SerializeToString()


async def _work(namespaces: list[str], data: bytes) -> list[str]:
    """The work of the loop, in order: one message of each stream, all there at once, and a round of the loop as "-"."""
    paces, turns = StreamPaces(), list[str]()

    async def read(namespace: str) -> None:
        async with paces.begin(namespace).turn(data):
            turns.append(namespace)

    tasks = [asyncio.create_task(read(namespace)) for namespace in namespaces]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        turns.append("-")
    return turns


@pytest.mark.attack
async def test_between_two_heavy_messages_of_a_namespace_all_others_get_their_turn() -> None:
    assert weigh_message(LARGE) > HEAVY
    rounds = "".join(await _work(["a"] * 8, LARGE)).split("-")
    assert max(map(len, rounds)) == 1
    assert "".join(rounds) == "a" * 8


async def test_another_namespace_does_not_wait_for_them() -> None:
    rounds = "".join(await _work([*"aaaab"], LARGE)).split("-")
    assert rounds[0] == "ab"


async def test_light_ones_wait_for_nothing() -> None:
    assert weigh_message(LIGHT) <= HEAVY
    assert (await _work(["a"] * 8, LIGHT))[:8] == ["a"] * 8
