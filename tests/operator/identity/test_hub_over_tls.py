"""A hub as pods meet it: its certificate is renewed under way, and only the token's own pod may speak."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import RunningServer, ServerTls, serve
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.identity.token_review import TokenReviews
from fleetprof_sidecar.hub.address import HubAddress
from fleetprof_sidecar.hub.link import PROTOCOL_VERSION, HubLink
from fleetprof_sidecar.hub.outbox import Outbox
from harness.kubernetes.scripted_cluster import ScriptedCluster
from harness.memory_store import MemoryStore
from joserfc import jwt
from joserfc.jwk import OctKey

NAME = "fleetprof-hub.fleetprof-system.svc"
POD = {
    "authentication.kubernetes.io/pod-name": ["llama-0"],
    "authentication.kubernetes.io/pod-uid": ["u-1"],
}
VERDICT = {
    "authenticated": True,
    "audiences": ["fleetprof.io"],
    "user": {"username": "system:serviceaccount:team-a:default", "extra": POD},
}


class Greeting:
    """A sidecar's side of the conversation that says who it is, and no more."""

    def __init__(self, identity: hub_pb2.Identity, connected: Callable[[], None]) -> None:
        self._identity = identity
        self._connected = connected

    def make_hello(self) -> hub_pb2.Hello:
        return hub_pb2.Hello(protocol_version=PROTOCOL_VERSION, sidecar_id="s-1", identity=self._identity)

    def make_heartbeat(self) -> hub_pb2.Heartbeat:
        return hub_pb2.Heartbeat()

    def receive(self, message: hub_pb2.HubMessage) -> None:
        pass

    def note_connected(self, welcome: hub_pb2.Welcome) -> None:
        self._connected()


class World:
    """A hub, its certificates, and sidecars that dial it."""

    def __init__(self, folder: Path, log: pytest.LogCaptureFixture) -> None:
        self.log = log
        self.folder = folder
        self.certificates = renew_certificates(Certificates(), [NAME], datetime.now(UTC))
        self.cluster = ScriptedCluster()
        self.cluster.review = lambda token: VERDICT if token == "good" else {"authenticated": False}
        self.hub = Hub(store=MemoryStore(), authenticate=TokenReviews(self.cluster))
        self.server: RunningServer | None = None
        (folder / "token").write_text("good")
        (folder / "ca.crt").write_bytes(self.certificates.ca_crt)

    def tls(self) -> ServerTls:
        return ServerTls(certificate_chain=self.certificates.tls_crt, private_key=self.certificates.tls_key)

    async def start(self) -> None:
        self.server = await serve(self.hub, "127.0.0.1:0", tls=self.tls, captures=False)

    def link(
        self, *, connected: Callable[[], None], name: str = NAME, pause_s: float = 0.1, **identity: str
    ) -> HubLink:
        """The link that a sidecar dials with."""
        assert self.server is not None
        address = HubAddress(
            target=f"127.0.0.1:{self.server.port}",
            token_file=self.folder / "token",
            ca_file=self.folder / "ca.crt",
            name=name,
        )
        who: dict[str, Any] = {"namespace": "team-a", "pod_name": "llama-0", "pod_uid": "u-1", **identity}
        return HubLink(
            address,
            Outbox(),
            Greeting(hub_pb2.Identity(**who), connected),
            first_pause_s=pause_s,
            most_pause_s=pause_s,
        )

    async def connects(self, *, name: str = NAME, **identity: str) -> bool:
        """Tells whether a sidecar with this identity is welcomed."""
        welcomed = asyncio.Event()
        self.log.clear()
        link = self.link(connected=welcomed.set, name=name, pause_s=60, **identity)
        running = asyncio.create_task(link.run())
        try:
            async with asyncio.timeout(60):
                # It says so when it is not let in, and dials again after a minute only.
                while not welcomed.is_set() and "no connection to the hub" not in self.log.text:
                    await asyncio.sleep(0.02)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return welcomed.is_set()

    async def shown_certificate(self) -> str:
        assert self.server is not None
        return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", self.server.port))


@pytest.fixture
async def world(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[World]:
    made = World(tmp_path, caplog)
    await made.start()
    yield made
    assert made.server is not None
    await made.server.stop()
    await made.hub.close()


async def test_the_tokens_own_pod_is_welcome(world: World) -> None:
    assert await world.connects()


@pytest.mark.parametrize(
    "identity", [{"namespace": "team-b"}, {"pod_name": "llama-1"}, {"pod_uid": "u-2"}, {"pod_uid": ""}]
)
async def test_no_pod_speaks_for_another(world: World, identity: dict[str, str]) -> None:
    assert not await world.connects(**identity)


async def test_a_token_that_is_refused_opens_nothing(world: World) -> None:
    (world.folder / "token").write_text("bad")
    assert not await world.connects()


async def test_a_sidecar_whose_token_expires_dials_again_with_the_fresh_one(world: World) -> None:
    def until(seconds: float) -> str:
        return jwt.encode({"alg": "HS256"}, {"exp": time.time() + seconds}, OctKey.import_key("x" * 32))

    shown: list[str] = []

    def review(token: str) -> dict[str, Any]:
        shown.append(token)
        return VERDICT

    world.cluster.review = review
    (world.folder / "token").write_text(first := until(1.0))
    welcomes = asyncio.Semaphore(0)
    link = world.link(connected=welcomes.release)
    running = asyncio.create_task(link.run())
    async with asyncio.timeout(60):
        await welcomes.acquire()
        (world.folder / "token").write_text(fresh := until(3600))  # as the kubelet does, well before
        await welcomes.acquire()
    assert shown == [first, fresh]
    assert link.is_connected
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_hub_of_another_name_or_authority_is_not_trusted(world: World) -> None:
    assert not await world.connects(name="other.example")
    stranger = renew_certificates(Certificates(), [NAME], datetime.now(UTC))
    (world.folder / "ca.crt").write_bytes(stranger.ca_crt)
    assert not await world.connects()


async def test_a_renewed_certificate_is_shown_without_a_restart(world: World) -> None:
    before = await world.shown_certificate()
    assert before.strip() == world.certificates.tls_crt.decode().strip()
    found = world.certificates
    world.certificates = renew_certificates(
        Certificates(ca_crt=found.ca_crt, ca_key=found.ca_key), [NAME], datetime.now(UTC)
    )
    after = await world.shown_certificate()
    assert after.strip() == world.certificates.tls_crt.decode().strip()
    assert await world.connects()


async def test_the_command_lines_calls_are_not_served(world: World) -> None:
    """A pod's token must not be able to submit, cancel or list."""
    import grpc
    import grpc.aio
    from fleetprof_api.hub import hub_pb2_grpc

    assert world.server is not None
    address = HubAddress(
        target=f"127.0.0.1:{world.server.port}",
        token_file=world.folder / "token",
        ca_file=world.folder / "ca.crt",
        name=NAME,
    )
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(stack.enter_context(address.dial()).channel)
        stub: Any = hub_pb2_grpc.CapturesStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.List(hub_pb2.ListRequest(), metadata=(("authorization", "Bearer good"),))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
