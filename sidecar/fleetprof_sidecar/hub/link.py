"""The one connection of the sidecar: it dials the hub, says hello with all it holds, and stays in touch.

Guarantees: no port is opened; nothing is said to a hub that has not proved itself (`address`); whatever ends the
stream, it dials again with growing pauses; the hub's messages are handed on one by one, and one that cannot be handled
is logged and ends nothing. Sizes of messages are limited both ways.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final, Protocol

import grpc.aio
from fleetprof_api.hub import hub_pb2, hub_pb2_grpc
from fleetprof_api.process.backoff import Backoff

from fleetprof_sidecar.hub.address import Address
from fleetprof_sidecar.hub.outbox import Outbox

PROTOCOL_VERSION: Final = 1
_WELCOME_PATIENCE_S: Final = 15.0
_LEAST_HEARTBEAT_S: Final = 0.2
_MOST_HEARTBEAT_S: Final = 60.0

log = logging.getLogger(__name__)


class Conversation(Protocol):
    """The words said and heard on the link. The link calls it in the event loop; nothing of it may block."""

    def make_hello(self) -> hub_pb2.Hello:
        """The first message of each connection."""

    def make_heartbeat(self) -> hub_pb2.Heartbeat:
        """The message that is sent regularly, and after news."""

    def receive(self, message: hub_pb2.HubMessage) -> None:
        """Takes one message of the hub."""

    def note_connected(self, welcome: hub_pb2.Welcome) -> None:
        """The hub has welcomed this connection: what was asked on an earlier one may be lost."""


class HubLink:
    """Keeps the connection while `run` runs, and sends what `outbox` gets."""

    def __init__(
        self,
        address: Address,
        outbox: Outbox,
        conversation: Conversation,
        *,
        first_pause_s: float = 0.5,
        most_pause_s: float | None = None,
    ) -> None:
        self._address = address
        self._outbox = outbox
        self._conversation = conversation
        self._news = asyncio.Event()
        self._pause = Backoff(first_pause_s, most_pause_s or address.most_pause_s)
        self._last_problem = ""
        self.is_connected = False

    def beat_soon(self) -> None:
        """There is news for a heartbeat: the next one does not wait for its time."""
        self._news.set()

    def finish(self) -> None:
        """Lets `run` end once the hub has read all that waits, which it may never do: the caller sets the bound."""
        self._outbox.close()

    async def run(self) -> None:
        """Dials, speaks, and dials again, until cancelled or finished."""
        while True:
            try:
                await self._converse()
                if self._outbox.closed:
                    return
                problem = "the hub ended the stream"
            except grpc.aio.AioRpcError as error:
                problem = f"{error.code().name}: {error.details()}"
            except (OSError, ValueError, TimeoutError, grpc.aio.UsageError) as error:
                problem = f"{type(error).__name__}: {error}"
            finally:
                self.is_connected = False
            # A stream that fails while it is being opened swallows the cancellation of who waits for it, grpcio 1.85.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError
            pause_s = self._pause.next_s()
            if problem != self._last_problem:  # a job may wait for days for a hub that nobody starts
                log.warning("no connection to the hub at %s: %s", self._address, problem[:500])
                self._last_problem = problem
            await asyncio.sleep(pause_s)

    async def _converse(self) -> None:
        async with AsyncExitStack() as stack:
            dialled = stack.enter_context(self._address.dial())
            channel = await stack.enter_async_context(dialled.channel)
            metadata = grpc.aio.Metadata(("authorization", f"Bearer {dialled.token}"))
            stub: hub_pb2_grpc.HubAsyncStub = hub_pb2_grpc.HubStub(channel)
            stream = stub.Connect(self._speak(), metadata=metadata)
            beat: asyncio.Task[None] | None = None
            try:
                answers = aiter(stream)
                async with asyncio.timeout(_WELCOME_PATIENCE_S):
                    first = await anext(answers, None)
                if first is None:
                    return
                if first.WhichOneof("body") != "welcome" or first.welcome.protocol_version != PROTOCOL_VERSION:
                    raise ValueError(f"the hub does not speak protocol {PROTOCOL_VERSION}; update the older side")
                log.info("connected to the hub at %s", self._address)
                self.is_connected, self._last_problem = True, ""
                self._pause.reset()
                self._conversation.note_connected(first.welcome)
                beat = asyncio.create_task(self._beat(first.welcome.heartbeat_interval_ns / 1e9))
                async for message in answers:
                    self._hand_on(message)
            finally:
                if beat is not None:
                    beat.cancel()
                stream.cancel()

    async def _speak(self) -> AsyncIterator[hub_pb2.SidecarMessage]:
        # What was queued before is in Hello, or is asked again by its delivery.
        connection = self._outbox.begin()
        yield hub_pb2.SidecarMessage(hello=self._conversation.make_hello())
        while (message := await self._outbox.get(connection)) is not None:
            yield message

    def _hand_on(self, message: hub_pb2.HubMessage) -> None:
        try:
            self._conversation.receive(message)
        except Exception:
            log.exception("a message of the hub could not be handled: %s", message.WhichOneof("body"))

    async def _beat(self, asked_s: float) -> None:
        interval_s = min(_MOST_HEARTBEAT_S, max(_LEAST_HEARTBEAT_S, asked_s))
        while True:
            self._news.clear()
            self._outbox.send(hub_pb2.SidecarMessage(heartbeat=self._conversation.make_heartbeat()))
            earliest = asyncio.get_running_loop().time() + _LEAST_HEARTBEAT_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._news.wait()
                await asyncio.sleep(earliest - asyncio.get_running_loop().time())
