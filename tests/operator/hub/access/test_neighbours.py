"""One tenant and the others: what a pod that means harm can do over real streams, and what the others see of it."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import HubStub
from fleetprof_operator.hub.access import call_authentication
from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import RunningServer, serve
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.sidecars.stream_seats import DIALS_AT_ONCE, MOST_OF_POD
from harness.memory_store import MemoryStore

PATIENCE_S = 90


class Tokens:
    """`NAMESPACE/POD` is good for that pod; `NAMESPACE/POD/SECONDS` only so long."""

    def __init__(self) -> None:
        self.calls = 0

    async def authenticate(self, token: str) -> Principal | None:
        self.calls += 1
        namespace, _, rest = token.partition("/")
        pod, _, seconds = rest.partition("/")
        if not pod:
            return None
        expires = time.time_ns() + int(float(seconds) * 1e9) if seconds else 0
        return Principal(namespace=namespace, pod_name=pod, pod_uid=f"u-{pod}", expires_unix_ns=expires)


END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs do not know it


class World:
    """A hub as the operator serves it, on loopback, and pods that dial it."""

    def __init__(self, **settings: Any) -> None:
        self.hub = Hub(store=MemoryStore(), authenticate=Tokens(), settings=replace(HubSettings(), **settings))
        self.server: RunningServer
        self.channels: list[grpc.aio.Channel] = []

    async def start(self) -> "World":
        self.server = await serve(self.hub, "127.0.0.1:0", captures=False)
        return self

    async def stop(self) -> None:
        for channel in self.channels:
            await channel.close(None)
        await self.server.stop()
        await self.hub.close()

    def dial(self, token: str) -> Any:
        """A stream over a connection of its own."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", 8 << 20)]
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.server.port}", options=options)
        self.channels.append(channel)
        return HubStub(channel).Connect(None, metadata=(("authorization", f"Bearer {token}"),))

    async def greet(self, token: str, sidecar_id: str, **fields: Any) -> Any:
        """A stream that said hello and was welcomed. Raises AioRpcError when it was not."""
        call = self.dial(token)
        await say_hello(call, token, sidecar_id, **fields)
        async with asyncio.timeout(PATIENCE_S):
            welcome = await call.read()
        if welcome is END:
            raise AssertionError(f"{await call.code()}: {await call.details()}")
        assert welcome.WhichOneof("body") == "welcome"
        return call


async def say_hello(call: Any, token: str, sidecar_id: str, **fields: Any) -> None:
    namespace, pod = token.split("/")[:2]
    identity = pb.Identity(namespace=namespace, pod_name=pod, pod_uid=f"u-{pod}")
    await call.write(
        pb.SidecarMessage(hello=pb.Hello(protocol_version=1, sidecar_id=sidecar_id, identity=identity, **fields))
    )


async def end_of(call: Any) -> tuple[str, str]:
    """The end that the hub gave a stream."""
    async with asyncio.timeout(PATIENCE_S):
        try:
            while await call.read() is not END:
                pass
        except grpc.aio.AioRpcError:
            pass
        return (await call.code()).name, await call.details()


async def until(fits: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not fits():
            await asyncio.sleep(0.01)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = await World().start()
    yield made
    await made.stop()


@pytest.mark.attack
async def test_a_pod_has_one_stream_and_the_newest_is_it(world: World) -> None:
    first = await world.greet("evil/e", "s-1")
    await world.greet("evil/e", "s-2")
    assert await end_of(first) == ("ABORTED", "replaced by a newer stream of the same pod")
    assert [status.sidecar_id for status in await world.hub.fleet()] == ["s-2"]
    await world.greet("team/a", "s-3")


@pytest.mark.attack
async def test_a_pod_does_not_take_the_streams_of_others(world: World) -> None:
    silent = [world.dial("evil/e") for _ in range(MOST_OF_POD + 3)]  # none says hello
    ends = [asyncio.create_task(end_of(call)) for call in silent]
    await until(lambda: sum(task.done() for task in ends) >= 3)
    assert {task.result()[0] for task in ends if task.done()} == {"RESOURCE_EXHAUSTED"}
    assert "a pod has one sidecar" in next(task.result()[1] for task in ends if task.done())
    await world.greet("team/a", "s")
    for task in ends:
        task.cancel()
    assert world.hub.refusals.counts["TooManyStreams"] == 3


@pytest.mark.attack
async def test_a_namespace_does_not_take_the_streams_of_others() -> None:
    world = await World(max_streams_per_namespace=4).start()
    for number in range(4):
        await world.greet(f"evil/e{number}", f"e-{number}")
    code, details = await end_of(world.dial("evil/e4"))
    assert (code, "namespace evil has 4 streams" in details) == ("RESOURCE_EXHAUSTED", True)
    await world.greet("team/a", "s")
    await world.stop()


@pytest.mark.attack
async def test_a_pod_that_comes_again_and_again_waits(world: World) -> None:
    for number in range(DIALS_AT_ONCE):
        (await world.greet("evil/e", f"s-{number}")).cancel()
    code, details = await end_of(world.dial("evil/e"))
    assert (code, "the pod dials more than" in details) == ("RESOURCE_EXHAUSTED", True)
    await world.greet("team/a", "s")


@pytest.mark.attack
async def test_what_is_kept_of_a_pod_and_a_namespace_is_bounded() -> None:
    world = await World(max_namespace_bytes=1 << 20).start()
    many = [pb.Process(process_id=f"p{n}", device_name="x" * 250, torch_version="y" * 250) for n in range(1000)]
    some = many[:170]
    call = world.dial("evil/e0")
    await say_hello(call, "evil/e0", "s-0", processes=many)
    code, details = await end_of(call)
    assert (code, details.startswith("the hub would keep 2034 KiB of this sidecar, at most 1024; it sees")) == (
        "RESOURCE_EXHAUSTED",
        True,
    )
    streams = [await world.greet(f"evil/e{n}", f"s-{n}", processes=some) for n in (1, 2)]
    code, details = await _refused(world, "evil/e3", "s-3", processes=some)
    assert (code, "of namespace evil, at most 1" in details) == ("RESOURCE_EXHAUSTED", True)
    await streams[0].write(pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=many)))  # not by a heartbeat either
    assert (await end_of(streams[0]))[0] == "RESOURCE_EXHAUSTED"
    await until(lambda: world.hub.count_kept_bytes() < 600 << 10)  # its processes are forgotten with its stream
    await world.greet("evil/e3", "s-3", processes=some)
    await world.greet("team/a", "s", processes=some)
    assert world.hub.refusals.counts["OverBudget"] == 3
    await world.stop()


async def _refused(world: World, token: str, sidecar_id: str, **fields: Any) -> tuple[str, str]:
    call = world.dial(token)
    await say_hello(call, token, sidecar_id, **fields)
    return await end_of(call)


@pytest.mark.attack
async def test_only_served_namespaces_are_heard() -> None:
    world = await World(namespaces=("team",)).start()
    code, details = await end_of(world.dial("evil/e"))
    assert (code, details) == (
        "PERMISSION_DENIED",
        "namespace evil is not served by this hub (`namespaces` of its chart)",
    )
    await world.greet("team/a", "s")
    await world.stop()


@pytest.mark.attack
async def test_words_that_are_no_tokens_keep_nobody_out(world: World, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(call_authentication, "REFUSAL_S", 0.05)
    caplog.set_level(logging.INFO)

    async def guess() -> str:
        return (await end_of(world.dial(os.urandom(8).hex())))[0]

    async with asyncio.timeout(60):
        for _ in range(4):
            guesses = [asyncio.create_task(guess()) for _ in range(50)]
            await world.greet("team/a", "s")
            assert {await task for task in guesses} == {"UNAUTHENTICATED"}
    assert world.hub.refusals.counts["BadToken"] == 200
    world.hub.refusals.close()
    messages = [record.message for record in caplog.records if "refused" in record.message]
    assert len(messages) == 2
    assert "199 × BadToken; the latest: ipv4:127.0.0.1" in messages[1]


@pytest.mark.attack
async def test_one_address_does_not_take_the_whole_door(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(call_authentication, "MOST_OF_PEER", 5)
    monkeypatch.setattr(call_authentication, "REFUSALS_AT_ONCE", 0)
    monkeypatch.setattr(
        call_authentication, "REFUSAL_S", 600.0
    )  # whoever is refused stays at the door until the test ends
    waiting = [asyncio.create_task(end_of(world.dial("bad"))) for _ in range(5)]
    await until(lambda: world.hub.refusals.counts["BadToken"] == 5)
    assert (await end_of(world.dial("bad")))[0] == "RESOURCE_EXHAUSTED"
    assert world.hub.refusals.counts["TooManyCalls"] == 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.attack
async def test_a_message_that_grows_when_decoded_ends_its_stream(world: World) -> None:
    call = await world.greet("evil/e", "s")
    bomb = pb.Heartbeat(processes=[pb.Process()] * 400_000)
    await call.write(pb.SidecarMessage(heartbeat=bomb))
    assert await end_of(call) == ("INVALID_ARGUMENT", "a message has more than 6000 elements")


@pytest.mark.attack
async def test_a_sidecar_that_does_not_read_is_turned_out(world: World, monkeypatch: Any) -> None:
    from fleetprof_operator.hub import streams

    monkeypatch.setattr(streams, "MOST_WAITING_BYTES", 256 << 10)
    call = await world.greet("evil/e", "s")
    (record,) = world.hub.sidecars()
    for _ in range(3000):
        if record.link is None:
            break
        record.link.send(pb.HubMessage(release=pb.Release(capture_id="x" * 1000)))
        await asyncio.sleep(0)
    await until(lambda: world.hub.refusals.counts["NotReading"] == 1)
    assert record.link is None
    assert (await end_of(call))[0] == "RESOURCE_EXHAUSTED"
    await world.greet("team/a", "s-2")


@pytest.mark.attack
async def test_a_stream_ends_with_its_token(world: World) -> None:
    call = await world.greet("team/a/0.5", "s")
    assert await end_of(call) == (
        "UNAUTHENTICATED",
        "the token that opened this stream has expired; dial again with the fresh one",
    )
    await until(lambda: world.hub.count_connected() == 0)
    await world.greet("team/a", "s")
