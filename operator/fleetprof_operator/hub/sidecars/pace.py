"""The pace at which the messages of sidecars are read, and which is worked on next.

Guarantees: messages are weighed before they are decoded; a sender that is too fast, alone or with the others of its
namespace, waits, and nothing of it is dropped; between two heavy messages of one namespace all that is ready on the
event loop gets its turn, so that a namespace makes the loop late by one message, not by all that it sends at once.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_operator.hub.sidecars.message_weight import weigh_message

STREAM_BURST: Final = 8 << 20
STREAM_PER_S: Final = 256 << 10
"""Weight that one stream may send: twenty of a full node's heartbeats per second, or one of the largest in two."""
NAMESPACE_BURST: Final = 64 << 20
NAMESPACE_PER_S: Final = 16 << 20
HEAVY: Final = 256 << 10
"""Weight of a message that takes milliseconds of the event loop; the largest have more than ten times that."""
_MOST_SHARES: Final = 10_000


class _Share:
    """The share of all streams of one namespace."""

    def __init__(self, now_s: float) -> None:
        self.bucket = TokenBucket(NAMESPACE_BURST, NAMESPACE_PER_S, now_s)
        self.turn = asyncio.Lock()


class StreamPace:
    """The pace of one stream."""

    def __init__(self, share: _Share) -> None:
        self._own = TokenBucket(STREAM_BURST, STREAM_PER_S, time.monotonic())
        self._share = share

    @contextlib.asynccontextmanager
    async def turn(self, data: bytes) -> AsyncIterator[None]:
        """Around the work on a message, which must not wait for anything. Raises ProtocolError: too many elements."""
        weight, now = weigh_message(data), time.monotonic()
        if (pause_s := max(self._own.take(weight, now), self._share.bucket.take(weight, now))) > 0:
            await asyncio.sleep(pause_s)
        if weight <= HEAVY:
            yield
            return
        async with self._share.turn:
            yield
            await asyncio.sleep(0)


class StreamPaces:
    """The paces of all streams, by namespace."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}

    def begin(self, namespace: str) -> StreamPace:
        """That of a new stream."""
        now = time.monotonic()
        if len(self._shares) >= _MOST_SHARES:
            self._shares = {name: share for name, share in self._shares.items() if not share.bucket.is_full(now)}
        return StreamPace(self._shares.setdefault(namespace, _Share(now)))
