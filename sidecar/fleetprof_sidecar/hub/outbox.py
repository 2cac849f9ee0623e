"""Messages that wait to be sent to the hub: bounded, and only the latest about each thing.

Guarantees: at most one message per (capture, process) and kind, in the order in which they were first queued; a full
box drops the oldest. Nothing is lost for good: after a reconnect Hello restates every capture, and deliveries ask anew.
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
        self.closed = False

    def send(self, message: hub_pb2.SidecarMessage) -> None:
        """Queues a message in place of an older one about the same thing."""
        key = _subject(message)
        if key not in self._waiting and len(self._waiting) >= MAX_MESSAGES:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = message
        self._filled.set()

    async def get(self) -> hub_pb2.SidecarMessage | None:
        """The oldest message, as soon as there is one; None when the box is closed and empty."""
        while not self._waiting:
            if self.closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        return self._waiting.pop(next(iter(self._waiting)))

    def close(self) -> None:
        """Nothing more will come: what waits is the last."""
        self.closed = True
        self._filled.set()

    def clear(self) -> None:
        """Forgets everything: a new connection begins with Hello."""
        self._waiting.clear()

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
