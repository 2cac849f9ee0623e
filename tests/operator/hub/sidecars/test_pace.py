"""The message that is worked on next: heavy ones come one at a time, and between them the event loop is free."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.sidecars.message_weight import weigh_message
from fleetprof_operator.hub.sidecars.pace import HEAVY, REST, StreamPace, StreamPaces

PROCESS = pb.Process(process_id="p" * 60, torch_version="2.15.0")
LIGHT = pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=[PROCESS] * 16)).SerializeToString()
LARGE = pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=[PROCESS] * 600)).SerializeToString()
PARTS = pb.SidecarMessage(upload_request=pb.UploadRequest(parts=[pb.Part(size_bytes=1)] * 40)).SerializeToString()
WORK_S = 0.006


class BusyLoop:
    """An event loop's time: work takes WORK_S of it, and a pause passes at once. `did` has all in order."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.did: list[str] = []
        self.paces = StreamPaces(lambda: self.now_s, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.did.append(f"{1e3 * seconds:.0f} ms free")
        self.now_s += seconds
        await asyncio.sleep(0)

    async def read(self, namespace: str, data: bytes, problem: Exception | None = None) -> None:
        async with self._work(self.paces.begin(namespace), data):
            self.did.append(namespace)
            self.now_s += WORK_S
            if problem is not None:
                raise problem

    @asynccontextmanager
    async def _work(self, stream: StreamPace, data: bytes) -> AsyncIterator[None]:
        async with stream.turn(await stream.admit(data)):
            yield

    async def read_all(self, namespaces: Sequence[str], data: bytes, problem: Exception | None = None) -> list[str]:
        """One message of a stream of each namespace, all there at once."""
        tasks = [asyncio.create_task(self.read(namespace, data, problem)) for namespace in namespaces]
        await asyncio.gather(*tasks, return_exceptions=problem is not None)
        return self.did


FREE = f"{1e3 * REST * WORK_S:.0f} ms free"


@pytest.mark.attack
async def test_after_a_heavy_message_the_loop_is_free_for_several_times_as_long() -> None:
    assert weigh_message(LARGE).at_once > HEAVY
    assert await BusyLoop().read_all("aaaa", LARGE) == ["a", FREE, "a", FREE, "a", FREE, "a"]


@pytest.mark.attack
async def test_also_after_one_that_is_refused() -> None:
    assert await BusyLoop().read_all("aaa", LARGE, ValueError("too much")) == ["a", FREE, "a", FREE, "a"]


@pytest.mark.attack
async def test_the_heavy_messages_of_two_namespaces_take_turns() -> None:
    # The first is done before any other comes.
    assert [did for did in await BusyLoop().read_all("aaaab", LARGE) if did != FREE] == ["a", "a", "b", "a", "a"]


async def test_one_that_is_cut_off_while_it_waits_keeps_nobody_waiting() -> None:
    loop = BusyLoop()
    first, second, third = (asyncio.create_task(loop.read(namespace, LARGE)) for namespace in "aab")
    second.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert loop.did == ["a", FREE, "b"]


@pytest.mark.parametrize("data", [LIGHT, PARTS], ids=["light", "parts that are signed later"])
async def test_the_others_wait_for_nothing(data: bytes) -> None:
    assert weigh_message(data).at_once <= HEAVY
    assert await BusyLoop().read_all("aaaa", data) == ["a"] * 4
