"""Messages that wait to be sent to the hub: bounded, and only the latest about each thing.

Guarantees: at most one message per (capture, process) and kind, in the order in which they were first queued; a full
box drops the oldest; only the latest connection gets any. Nothing is lost for good: after a reconnect Hello restates
every capture, and deliveries ask anew.
"""

import asyncio
from typing import Final, Protocol

from fleetprof_api.hub import hub_pb2

MAX_MESSAGES: Final = 4096


class HubSender(Protocol):
    """The sink of messages to the hub: an `Outbox`."""

    def send(self, message: hub_pb2.SidecarMessage) -> None:
        """Queues a message; never blocks."""


class Outbox:
    """For one event loop; `send` never blocks."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, ...], hub_pb2.SidecarMessage] = {}
        self._filled = asyncio.Event()
        self._connection = 0
        self.closed = False

    def send(self, message: hub_pb2.SidecarMessage) -> None:
        """Queues a message in place of an older one about the same thing."""
        key = _subject(message)
        if key not in self._waiting and len(self._waiting) >= MAX_MESSAGES:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = message
        self._filled.set()

    def begin(self) -> int:
        """A new connection's number. It begins with Hello, so what waits is forgotten; earlier ones get no more.

        gRPC lets the reader of a stream that the hub ended wait on: it would take the first message of the next one.
        """
        self._waiting.clear()
        self._connection += 1
        self._filled.set()
        return self._connection

    async def get(self, connection: int) -> hub_pb2.SidecarMessage | None:
        """The oldest message, as soon as there is one; None when nothing more comes for this connection."""
        while connection == self._connection:
            if self._waiting:
                return self._waiting.pop(next(iter(self._waiting)))
            if self.closed:
                break
            self._filled.clear()
            await self._filled.wait()
        return None

    def close(self) -> None:
        """Nothing more will come: what waits is the last."""
        self.closed = True
        self._filled.set()

    def __len__(self) -> int:
        return len(self._waiting)


def _subject(message: hub_pb2.SidecarMessage) -> tuple[str, ...]:
    kind = message.WhichOneof("body") or ""
    match kind:
        case "event":
            return kind, message.event.capture_id, message.event.process_id
        case "upload_request":
            upload = message.upload_request
            return kind, upload.capture_id, upload.process_id, str(upload.object)
        case "upload_done":
            completion = message.upload_done
            return kind, completion.capture_id, completion.process_id, str(completion.object)
        case "stacks":
            return kind, message.stacks.question, message.stacks.process_id
        case _:
            return (kind,)
