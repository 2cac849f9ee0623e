"""The gRPC server's limits: tokens, plain text, malformed and oversized messages, pace."""

import asyncio
import json
import re
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_operator.hub import server as server_module
from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import ServerTls, serve
from fleetprof_operator.hub.sidecars.messages import ProtocolError, parse_message
from harness.identity.keys import make_certificate
from harness.memory_store import MemoryStore
from hypothesis import given
from hypothesis import strategies as st

METADATA = (("authorization", "Bearer a-token-for-tests"),)
HELLO = pb.SidecarMessage(
    hello=pb.Hello(protocol_version=1, sidecar_id="s", identity=pb.Identity(namespace="team"))
).SerializeToString()


END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs do not know it


def connect(channel: grpc.aio.Channel, metadata: Any) -> Any:
    """A stream of bytes that nobody has looked at; the stubs want (de)serializers."""
    raw: Any = channel.stream_stream
    return raw("/fleetprof.v1.Hub/Connect")(metadata=metadata)


async def _converse(port: int, *messages: bytes, metadata: Any = METADATA) -> tuple[grpc.StatusCode, str]:
    """Sends raw bytes over a stream; how the server ended it.

    gRPC's client says INTERNAL by itself where the server ended the stream before the first message was written: that
    conversation is repeated, four times at most.
    """
    code, details = await _converse_once(port, messages, metadata)
    for _ in range(4):
        if code is not grpc.StatusCode.INTERNAL:
            break
        code, details = await _converse_once(port, messages, metadata)
    return code, details


async def _converse_once(port: int, messages: Sequence[bytes], metadata: Any) -> tuple[grpc.StatusCode, str]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel, asyncio.timeout(60):
        call = connect(channel, metadata)
        try:
            for message in messages:
                await call.write(message)
            while await call.read() is not END:
                pass
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        return await call.code(), await call.details()


async def _is_welcomed(port: int, metadata: Any = METADATA) -> bool:
    """Tells whether a hello is answered as it should be."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel, asyncio.timeout(60):
        call = connect(channel, metadata)
        await call.write(HELLO)
        answer = pb.HubMessage.FromString(await call.read())
        call.cancel()
        return answer.welcome.heartbeat_interval_ns > 0


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ((), "no token: send `authorization: Bearer <token>`"),
        ((("authorization", "Bearer wrong-token"),), "the token is not the hub's"),
        ((("authorization", "a-token-for-tests"),), "no token"),
        ((("authorization", "Bearer "),), "no token"),
        ((*METADATA, *METADATA), "no token"),
    ],
)
async def test_nobody_is_heard_without_the_token(ground: Any, metadata: Any, says: str) -> None:
    code, details = await _converse(ground.server.port, HELLO, metadata=metadata)
    assert (code, details.startswith(says)) == (grpc.StatusCode.UNAUTHENTICATED, True)
    assert await ground.hub.fleet() == []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ground.server.port}") as channel:
        stub = CapturesStub(channel)
        calls: list[Awaitable[object]] = [
            stub.Submit(pb.SubmitRequest(), metadata=metadata),
            stub.Cancel(pb.CaptureRef(), metadata=metadata),
            stub.List(pb.ListRequest(), metadata=metadata),
            stub.Fleet(pb.FleetRequest(), metadata=metadata),
            stub.Watch(pb.CaptureRef(), metadata=metadata).read(),
        ]
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def _hello(**fields: Any) -> bytes:
    given_fields: dict[str, Any] = {"protocol_version": 1, "sidecar_id": "s", "identity": pb.Identity(namespace="team")}
    return pb.SidecarMessage(hello=pb.Hello(**(given_fields | fields))).SerializeToString()


def _event(**fields: Any) -> bytes:
    given_fields: dict[str, Any] = {"capture_id": "c", "process_id": "p", "state": pb.ARMED}
    return pb.SidecarMessage(event=pb.CaptureEvent(**(given_fields | fields))).SerializeToString()


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([b"\xff\xff\xff"], "a message is not a fleetprof.v1.SidecarMessage"),
        ([b""], "a message has no body"),
        ([HELLO[:-1]], "a message is not a fleetprof.v1.SidecarMessage"),
        ([_event()], "the first message must be hello"),
        ([HELLO, HELLO], "hello may come once only"),
        ([HELLO, b"\x00"], "a message is not"),
        ([_hello(protocol_version=2)], "hello.protocol_version: this hub speaks 1, got 2"),
        ([_hello(sidecar_id="")], "hello.sidecar_id: must be 1 to 128 of"),
        ([_hello(sidecar_id="../../etc")], "hello.sidecar_id: must be"),
        ([_hello(sidecar_id="x" * 129)], "hello.sidecar_id: must be"),
        ([_hello(identity=pb.Identity(pod_name="x" * 1025))], "hello.identity: a text of 1025 characters"),
        ([_hello(identity=pb.Identity(labels={str(n): "" for n in range(129)}))], "hello.identity.labels: at most 128"),
        ([_hello(processes=[pb.Process(process_id=str(n)) for n in range(1025)])], "processes: at most 1024, got 1025"),
        ([_hello(processes=[pb.Process(process_id="a")] * 2)], "process.process_id: a comes twice"),
        ([_hello(processes=[pb.Process(process_id="a", rank=-1)])], "rank: must be 0 to"),
        ([_hello(processes=[pb.Process(process_id="a", world_size=2**31 - 1)])], "process.world_size: must be 0 to"),
        (
            [_hello(processes=[pb.Process(process_id="a", poll_interval_ns=-1)])],
            "process.poll_interval_ns: must not be",
        ),
        (
            [_hello(processes=[pb.Process(process_id="a", memory_headroom_bytes=-1)])],
            "process.memory_headroom_bytes: must not be",
        ),
        (
            [_hello(processes=[pb.Process(process_id="a", step=pb.StepState(step=-1))])],
            "process.step.step: must not be",
        ),
        ([HELLO, _event(capture_id="")], "capture_id: must be"),
        ([HELLO, _event(rank=-1)], "rank: must be 0 to"),
        ([HELLO, _event(state=0)], "event.state: 0 is not a state"),
        ([HELLO, _event(state=77)], "event.state: 77 is not a state"),
        ([HELLO, _event(message="x" * 1025)], "event: a text of 1025 characters"),
        ([HELLO, _event(trace_bytes=-1)], "event: sizes must not be negative"),
        (
            [HELLO, _event(recording_cost=pb.RecordingCost(events=-1))],
            "event.recording_cost: must not be negative",
        ),
        ([HELLO, _event(armed_unix_ns=-1)], "event.armed_unix_ns: must not be negative"),
    ],
)
async def test_malformed_messages_end_the_stream_with_a_sentence(ground: Any, messages: list[bytes], says: str) -> None:
    code, details = await _converse(ground.server.port, *messages)
    assert (code, details[: len(says)]) == (grpc.StatusCode.INVALID_ARGUMENT, says)
    assert all(status.connected_unix_ns == 0 for status in await ground.hub.fleet())
    assert await _is_welcomed(ground.server.port)  # the hub is well


async def test_oversized_messages_end_the_stream(ground: Any) -> None:
    code, _ = await _converse(ground.server.port, HELLO, b"\x00" * (5 << 20))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


@given(data=st.lists(st.one_of(st.binary(max_size=200), st.just(HELLO), st.just(_event())), max_size=4))
def test_no_bytes_are_taken_for_anything_but_a_protocol_error(data: list[bytes]) -> None:
    for message in data:
        with suppress(ProtocolError):
            assert parse_message(message).WhichOneof("body")


async def test_a_sidecar_that_sends_too_fast_is_read_more_slowly(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    for _ in range(1900):  # somewhat more than its burst
        await sidecar.beat()
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid  # and others are served meanwhile
    await sidecar.say_all(await sidecar.expect("arm"), "FAILED", reason="Busy", message="busy")
    assert kit.states(await ground.await_end(uid)) == {0: "Busy"}


async def test_a_sidecar_cannot_take_the_place_of_one_in_another_namespace(ground: Any) -> None:
    await ground.add_sidecar(0)
    code, details = await _converse(
        ground.server.port, _hello(sidecar_id="s0", identity=pb.Identity(namespace="rival"))
    )
    assert (code, details) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "hello.sidecar_id: is that of a sidecar in another namespace",
    )
    assert [status.connected_unix_ns > 0 for status in await ground.hub.fleet()] == [True]


async def test_events_from_another_namespace_are_not_heard(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.expect("arm")
    rival = await ground.add_sidecar(9, namespace="rival")
    await rival.say(uid, "p0", 0, "FAILED", reason="TooLate")
    await rival.ask_upload(uid, pb.Order(process_id="p0", rank=0), b"x")
    await sidecar.say(uid, "p0", 0, "ARMED")
    status = await ground.await_status(uid, lambda s: kit.states(s) != {0: "ASKED"})
    assert kit.states(status) == {0: "ARMED"}
    assert not [m for m in rival.received if m.WhichOneof("body") != "welcome"]


class _OneNamespace:
    async def authenticate(self, token: str) -> Principal | None:
        return Principal(namespace="team") if token == "pod-token" else None


async def test_a_token_speaks_for_its_namespace() -> None:
    hub = Hub(store=MemoryStore(), authenticate=_OneNamespace())
    server = await serve(hub, "127.0.0.1:0")
    metadata = (("authorization", "Bearer pod-token"),)
    assert await _is_welcomed(server.port, metadata)
    code, details = await _converse(server.port, _hello(identity=pb.Identity(namespace="rival")), metadata=metadata)
    assert (code, details) == (grpc.StatusCode.INVALID_ARGUMENT, "hello.identity.namespace: is not that of the token")
    await server.stop()
    await hub.close()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "10.1.2.3:0", "hub.example:0", ":0"])
async def test_plain_text_stays_on_loopback(ground: Any, address: str) -> None:
    with pytest.raises(ValueError, match="is not a loopback address: a hub there needs TLS"):
        await serve(ground.hub, address, token="a-token-for-tests")


async def test_a_hub_needs_exactly_one_way_to_know_its_callers(ground: Any) -> None:
    with pytest.raises(ValueError, match="one of both"):
        await serve(ground.hub, "127.0.0.1:0")
    with pytest.raises(ValueError, match="at least 16 characters"):
        await serve(ground.hub, "127.0.0.1:0", token="short")


async def test_a_second_hub_on_the_port_is_an_error(ground: Any) -> None:
    with pytest.raises(OSError, match=r"cannot listen at 127.0.0.1:\d+.*is another hub there"):
        await serve(ground.hub, f"127.0.0.1:{ground.server.port}", token="a-token-for-tests")


async def test_tls(ground: Any, kit: Any, tmp_path: Path) -> None:
    certificate, key = (path.read_bytes() for path in make_certificate(tmp_path))
    server = await serve(ground.hub, "127.0.0.1:0", token=kit.TOKEN, tls=ServerTls(certificate, key))
    credentials = grpc.ssl_channel_credentials(certificate)
    async with grpc.aio.secure_channel(f"127.0.0.1:{server.port}", credentials) as channel:
        reply = await CapturesStub(channel).Fleet(pb.FleetRequest(), metadata=METADATA)
    assert list(reply.sidecars) == []
    await server.stop()


async def test_the_command_lines_calls(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ground.server.port}") as channel:
        stub = CapturesStub(channel)
        text = kit.make_request().to_json()
        begun = await stub.Submit(
            pb.SubmitRequest(namespace="team", request_json=text, fail_fast=True), metadata=METADATA
        )
        assert json.loads(begun.request_json)["spec"]["window"] == {"iterations": 5}
        await sidecar.deliver(ground.store, await sidecar.expect("arm"))
        statuses = [status async for status in stub.Watch(pb.CaptureRef(uid=begun.uid), metadata=METADATA)]
        assert [status.finished for status in statuses] == [False] * (len(statuses) - 1) + [True]
        assert kit.succeeded(statuses[-1]) == ("True", "Complete")
        assert list((await stub.List(pb.ListRequest(), metadata=METADATA)).captures) == statuses[-1:]
        fleet = await stub.Fleet(pb.FleetRequest(), metadata=METADATA)
        assert [(s.sidecar_id, [p.process_id for p in s.processes]) for s in fleet.sidecars] == [("s0", ["p0"])]
        assert (await stub.Cancel(pb.CaptureRef(uid=begun.uid), metadata=METADATA)).finished


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("{", grpc.StatusCode.INVALID_ARGUMENT, "request: is not YAML"),
        ("{}", grpc.StatusCode.INVALID_ARGUMENT, "apiVersion: is required: fleetprof.io/v1alpha1\nkind: is required"),
        ("x" * 70_000, grpc.StatusCode.INVALID_ARGUMENT, "request: at most 65536 characters"),
        ("target", grpc.StatusCode.FAILED_PRECONDITION, "NothingMatched: no sidecar of Job/llama"),
    ],
)
async def test_a_refused_request_says_why(ground: Any, kit: Any, text: str, code: Any, says: str) -> None:
    text = kit.make_request().to_json() if text == "target" else text
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ground.server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await CapturesStub(channel).Submit(
                pb.SubmitRequest(namespace="team", request_json=text, fail_fast=True), metadata=METADATA
            )
    assert caught.value.code() is code
    assert re.match(says, caught.value.details() or "")


async def test_a_store_that_is_down_refuses_a_request_for_now(ground: Any, kit: Any) -> None:
    ground.store.pull_plug()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ground.server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="the store did not take the request") as caught:
            await CapturesStub(channel).Submit(
                pb.SubmitRequest(namespace="team", request_json=kit.make_request().to_json()), metadata=METADATA
            )
        assert caught.value.code() is grpc.StatusCode.ABORTED
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await CapturesStub(channel).Watch(pb.CaptureRef(uid="none"), metadata=METADATA).read()
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.attack
async def test_connections_are_bounded_and_those_that_are_there_go_on(
    ground: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reaches the port may connect without a token; each connection takes memory."""
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 20)
    server = await serve(ground.hub, "127.0.0.1:0", token=kit.TOKEN)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel, asyncio.timeout(60):
        call = connect(channel, METADATA)
        await call.write(HELLO)
        assert pb.HubMessage.FromString(await call.read()).HasField("welcome")
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(60)]
        for _, writer in held:
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        spoken_to = [await _has_bytes(reader) for reader, _ in held]
        assert spoken_to.count(True) == 19
        await call.write(pb.SidecarMessage(heartbeat=pb.Heartbeat()).SerializeToString())
        assert not call.done()
        for _, writer in held:
            writer.close()
        while not await _is_served(server.port):
            await asyncio.sleep(0.05)
        call.cancel()
    await server.stop()


async def _has_bytes(reader: asyncio.StreamReader) -> bool:
    """Tells whether the server's first words come, or the end."""
    try:
        return await reader.read(9) != b""
    except ConnectionError:
        return False


async def _is_served(port: int) -> bool:
    try:
        return await _is_welcomed(port)
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        return False
