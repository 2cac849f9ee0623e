"""The link to the hub against a real gRPC server: hello first, restated after each reconnect, never in the clear."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from fleetprof_api.hub import hub_pb2, hub_pb2_grpc
from fleetprof_api.hub.local_hub import HUB_SOCKET
from fleetprof_api.private_directory import PrivateDirectory
from fleetprof_sidecar.hub import outbox as outbox_module
from fleetprof_sidecar.hub.address import HubAddress, LocalHub
from fleetprof_sidecar.hub.link import HubLink
from fleetprof_sidecar.hub.outbox import Outbox
from harness.hub.scripted_hub import write_state
from harness.identity.keys import make_certificate

Await = Callable[..., Any]


class Sidecar:
    """The sidecar's side of the conversation."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.received: list[str] = []
        self.connections = 0
        self.on_connected: Callable[[], None] = lambda: None
        self.held = [hub_pb2.CaptureEvent(capture_id="cap", process_id="p", state=hub_pb2.ARMED)]

    def receive(self, message: hub_pb2.HubMessage) -> None:
        self.received.append(str(message.WhichOneof("body")))
        if message.WhichOneof("body") == "arm":
            raise ValueError("a message that cannot be handled")

    def note_connected(self, welcome: hub_pb2.Welcome) -> None:
        self.connections += 1
        self.on_connected()

    def make_hello(self) -> hub_pb2.Hello:
        return hub_pb2.Hello(protocol_version=1, sidecar_id="me", held=self.held)

    def make_heartbeat(self) -> hub_pb2.Heartbeat:
        return hub_pb2.Heartbeat(at_unix_ns=1)

    def link(self, address: HubAddress | LocalHub) -> HubLink:
        return HubLink(address, self.outbox, self, first_pause_s=0.02, most_pause_s=0.1)


@contextlib.asynccontextmanager
async def running(link: HubLink) -> AsyncIterator[HubLink]:
    task = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory of a hub that is not there (yet)."""
    write_state(tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture
def token(state: Path) -> Path:
    return state / "token"


@pytest.fixture
def address(hub: Any) -> LocalHub:
    return LocalHub(hub.state_directory)


def event(state: hub_pb2.RankState.ValueType, capture_id: str = "cap") -> hub_pb2.SidecarMessage:
    return hub_pb2.SidecarMessage(event=hub_pb2.CaptureEvent(capture_id=capture_id, process_id="p", state=state))


async def test_hello_comes_first_and_heartbeats_follow(hub: Any, address: LocalHub, await_that: Await) -> None:
    sidecar = Sidecar()
    async with running(sidecar.link(address)) as link:
        sidecar.outbox.send(event(hub_pb2.STARTED, "from before the connection"))
        await await_that(lambda: len(hub.heartbeats) > 2)
        assert hub.tokens == ["Bearer the-token"]
        assert (hub.hellos[0].sidecar_id, list(hub.hellos[0].held)) == ("me", sidecar.held)
        assert link.is_connected
        sidecar.outbox.send(event(hub_pb2.WRITTEN))
        await await_that(lambda: hub.state("cap") == "WRITTEN")


async def test_news_do_not_wait_for_the_next_heartbeat(hub: Any, address: LocalHub, await_that: Await) -> None:
    hub.heartbeat_interval_ns = 60 * 10**9
    sidecar = Sidecar()
    async with running(sidecar.link(address)) as link:
        await await_that(lambda: len(hub.heartbeats) == 1)
        for _ in range(5):
            link.beat_soon()
        await await_that(lambda: len(hub.heartbeats) == 2)
        await asyncio.sleep(0.5)
        assert len(hub.heartbeats) == 2  # a burst is one heartbeat
        link.beat_soon()
        await await_that(lambda: len(hub.heartbeats) == 3)


async def test_a_hub_that_restarts_is_told_everything_again(
    hub: Any, address: LocalHub, token: Path, await_that: Await
) -> None:
    sidecar = Sidecar()
    async with running(sidecar.link(address)) as link:
        await await_that(lambda: sidecar.connections == 1)
        await hub.stop()
        await await_that(lambda: not link.is_connected)
        sidecar.held[0].state = hub_pb2.UPLOADED
        token.write_text("rotated")
        await hub.start()
        await await_that(lambda: sidecar.connections == 2)
    assert [hello.held[0].state for hello in hub.hellos] == [hub_pb2.ARMED, hub_pb2.UPLOADED]
    assert hub.tokens[-1] == "Bearer rotated"


async def test_a_stream_that_the_hub_ends_is_dialled_again(hub: Any, address: LocalHub, await_that: Await) -> None:
    sidecar = Sidecar()
    async with running(sidecar.link(address)):
        for connections in (1, 2, 3):
            await await_that(lambda wanted=connections: sidecar.connections == wanted)
            hub.drop()


async def test_what_is_said_on_a_new_stream_reaches_the_hub(hub: Any, address: LocalHub, await_that: Await) -> None:
    """The generator of a stream that has ended waits for a message on, and took the first one of the next stream."""
    sidecar = Sidecar()
    sidecar.on_connected = lambda: sidecar.outbox.send(event(hub_pb2.ARMED, f"cap-{sidecar.connections}"))
    async with running(sidecar.link(address)):
        for connections in (1, 2, 3):
            await await_that(lambda wanted=connections: hub.state(f"cap-{wanted}") == "ARMED")
            hub.drop()


async def test_a_message_that_cannot_be_handled_ends_nothing(hub: Any, address: LocalHub, await_that: Await) -> None:
    sidecar = Sidecar()
    async with running(sidecar.link(address)):
        await await_that(lambda: sidecar.connections == 1)
        hub.send(arm=hub_pb2.Arm())
        hub.send()
        hub.send(release=hub_pb2.Release(capture_id="cap"))
        await await_that(lambda: "release" in sidecar.received)
    assert sidecar.received == ["arm", "None", "release"]
    assert sidecar.connections == 1


async def test_a_hub_of_another_version_is_not_spoken_to(
    hub: Any, address: LocalHub, await_that: Await, caplog: pytest.LogCaptureFixture
) -> None:
    hub.protocol_version = 2
    sidecar = Sidecar()
    async with running(sidecar.link(address)):
        await await_that(lambda: len(hub.hellos) > 1)
    assert sidecar.connections == 0
    assert "does not speak protocol 1" in caplog.text


async def test_bytes_that_are_no_message_end_only_the_stream(state: Path, await_that: Await) -> None:
    answers = [b"\xff\xff\xff", hub_pb2.HubMessage(welcome=hub_pb2.Welcome(protocol_version=1)).SerializeToString()]

    async def connect(messages: Any, context: Any) -> AsyncIterator[bytes]:
        yield answers.pop(0)
        await asyncio.sleep(60)

    handler = grpc.stream_stream_rpc_method_handler(connect)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fleetprof.v1.Hub", {"Connect": handler}),))
    with PrivateDirectory(state) as directory:
        server.add_insecure_port(f"unix:{directory.place(HUB_SOCKET)}")
        await server.start()
        sidecar = Sidecar()
        try:
            async with running(sidecar.link(LocalHub(state))):
                await await_that(lambda: sidecar.connections == 1)
        finally:
            await server.stop(None)
    assert answers == []


async def test_a_link_to_a_hub_that_refuses_ends_whenever_it_is_cancelled(state: Path) -> None:
    leave_socket(state)
    for attempt in range(150):
        link = Sidecar().link(LocalHub(state))
        task = asyncio.create_task(link.run())
        await asyncio.sleep(attempt % 50 * 0.0001)  # the moments around the first answer, which swallows it in grpcio
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=30)
        assert done
        assert task.cancelled()


async def test_an_empty_token_file_is_named_and_tried_again(
    hub: Any, address: LocalHub, token: Path, await_that: Await, caplog: pytest.LogCaptureFixture
) -> None:
    token.write_text("")
    sidecar = Sidecar()
    async with running(sidecar.link(address)):
        await await_that(lambda: "holds no token" in caplog.text)
        token.write_text("now")
        await await_that(lambda: sidecar.connections == 1)
    assert hub.tokens == ["Bearer now"]


@pytest.fixture
def authority(tmp_path: Path) -> tuple[Path, grpc.ServerCredentials]:
    """A certificate for 127.0.0.1 that signs itself: its file, and a server's credentials."""
    path, key = make_certificate(tmp_path)
    return path, grpc.ssl_server_credentials([(key.read_bytes(), path.read_bytes())])


async def test_tls_is_verified_against_the_authority(
    hub: Any, token: Path, authority: tuple[Path, grpc.ServerCredentials], await_that: Await
) -> None:
    ca_file, credentials = authority
    server = grpc.aio.server()
    hub_pb2_grpc.add_HubServicer_to_server(hub, server)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        sidecar = Sidecar()
        target = f"127.0.0.1:{port}"
        async with running(sidecar.link(HubAddress(target=target, token_file=token, ca_file=ca_file))):
            await await_that(lambda: sidecar.connections == 1)
        stranger = Sidecar()
        async with running(stranger.link(HubAddress(target=target, token_file=token))):
            await asyncio.sleep(0.5)
        assert stranger.connections == 0
        assert len(hub.tokens) == 1
    finally:
        await server.stop(None)


async def test_a_hub_that_appears_is_found_and_one_that_moved_to_the_network_too(
    hub: Any, state: Path, authority: tuple[Path, grpc.ServerCredentials], await_that: Await
) -> None:
    await hub.stop()
    (state / "hub.json").unlink()
    sidecar = Sidecar()
    ca_file, credentials = authority
    async with running(sidecar.link(LocalHub(state))):
        write_state(state)
        await hub.start()
        await await_that(lambda: sidecar.connections == 1)
        await hub.stop()
        server = grpc.aio.server()
        hub_pb2_grpc.add_HubServicer_to_server(hub, server)
        port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        try:
            write_state(state, f"127.0.0.1:{port}", str(ca_file))
            await await_that(lambda: sidecar.connections == 2)
        finally:
            await server.stop(None)
    assert set(hub.tokens) == {"Bearer the-token"}


def leave_socket(state: Path) -> None:
    """The leftover of a killed hub: a socket where nobody listens."""
    with PrivateDirectory(state) as directory, socket.socket(socket.AF_UNIX) as dead:
        dead.bind(directory.place(HUB_SOCKET))


def open_to_all(state: Path) -> None:
    state.chmod(0o755)


def owned_by_another(state: Path) -> None:
    os.chown(state, 12345, -1)


def with_anothers_socket(state: Path) -> None:
    leave_socket(state)
    os.chown(state / HUB_SOCKET, 12345, -1)


def with_a_file_as_socket(state: Path) -> None:
    (state / HUB_SOCKET).write_text("")


def with_anothers_token(state: Path) -> None:
    leave_socket(state)
    os.chown(state / "token", 12345, -1)


def with_a_link_as_token(state: Path) -> None:
    leave_socket(state)
    (state / "token").rename(state / "elsewhere")
    (state / "token").symlink_to(state / "elsewhere")


def on_the_network_without_a_certificate(state: Path) -> None:
    write_state(state, "127.0.0.1:7710")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")


@pytest.mark.attack
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (open_to_all, "is open to other users .mode 0755."),
        (with_a_file_as_socket, "is not a socket of your own"),
        (with_a_link_as_token, "symbolic link"),
        (on_the_network_without_a_certificate, "no certificate is named for the hub"),
        pytest.param(owned_by_another, "belongs to another user", marks=needs_root),
        pytest.param(with_anothers_socket, "is not a socket of your own", marks=needs_root),
        pytest.param(with_anothers_token, "is not a file of your own", marks=needs_root),
    ],
)
def test_no_token_is_read_out_to_a_hub_that_may_be_anothers(
    state: Path, spoil: Callable[[Path], None], words: str
) -> None:
    if spoil is open_to_all:
        leave_socket(state)
    spoil(state)
    with pytest.raises(OSError, match=words), LocalHub(state).dial():
        pass


# ---------------------------------------------------------------- what waits to be sent


async def take(box: Outbox) -> hub_pb2.SidecarMessage:
    """The next message, which must be there."""
    message = await box.get(connection=0)
    assert message is not None
    return message


async def test_of_each_thing_only_the_latest_waits() -> None:
    box = Outbox()
    box.send(event(hub_pb2.ARMED))
    box.send(hub_pb2.SidecarMessage(heartbeat=hub_pb2.Heartbeat(at_unix_ns=1)))
    box.send(event(hub_pb2.STARTED))
    box.send(hub_pb2.SidecarMessage(heartbeat=hub_pb2.Heartbeat(at_unix_ns=2)))
    box.send(hub_pb2.SidecarMessage(upload_request=hub_pb2.UploadRequest(capture_id="cap", object=hub_pb2.TRACE)))
    box.send(hub_pb2.SidecarMessage(upload_request=hub_pb2.UploadRequest(capture_id="cap", object=hub_pb2.SAMPLES)))
    box.send(hub_pb2.SidecarMessage(upload_done=hub_pb2.UploadDone(capture_id="cap", object=hub_pb2.TRACE)))
    sent = [await take(box) for _ in range(len(box))]
    assert [message.WhichOneof("body") for message in sent] == [
        "event",
        "heartbeat",
        "upload_request",
        "upload_request",
        "upload_done",
    ]
    assert sent[0].event.state == hub_pb2.STARTED
    assert sent[1].heartbeat.at_unix_ns == 2


async def test_a_full_box_drops_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "MAX_MESSAGES", 3)
    box = Outbox()
    for number in range(5):
        box.send(event(hub_pb2.ARMED, f"cap-{number}"))
    assert [(await take(box)).event.capture_id for _ in range(3)] == ["cap-2", "cap-3", "cap-4"]
