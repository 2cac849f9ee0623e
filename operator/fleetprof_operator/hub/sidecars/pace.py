"""The pace at which the messages of sidecars are read, and which is worked on next.

Guarantees: messages are weighed before they are decoded; a sender that is too fast, alone or with the others of its
namespace, waits, and nothing of it is dropped; heavy messages are worked on one at a time, of each namespace in turn,
and after each the event loop is free for REST times as long. A call needs a dozen turns of the loop, so that without
the rest it would meet a dozen of the heavy messages that come at once, not one.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_operator.hub.sidecars.message_weight import MessageWeight, weigh_message

STREAM_BURST: Final = 8 << 20
STREAM_PER_S: Final = 256 << 10
"""Weight that one stream may send: twenty of a full node's heartbeats per second, or one of the largest in two."""
NAMESPACE_BURST: Final = 64 << 20
NAMESPACE_PER_S: Final = 16 << 20
HEAVY: Final = 64 << 10
"""Weight that takes half a millisecond of the event loop at once; a node of 8 ranks sends an eighth of that."""
REST: Final = 9
_MOST_REST_S: Final = 0.25  # where the process was held up in the middle of the work
_MOST_SHARES: Final = 10_000


class _Share:
    """The share of all streams of one namespace."""

    def __init__(self, now_s: float) -> None:
        self.bucket = TokenBucket(NAMESPACE_BURST, NAMESPACE_PER_S, now_s)
        self.turn = asyncio.Lock()


class StreamPace:
    """The pace of one stream."""

    def __init__(self, paces: "StreamPaces", share: _Share) -> None:
        self._paces = paces
        self._own = TokenBucket(STREAM_BURST, STREAM_PER_S, paces.clock())
        self._share = share

    async def admit(self, data: bytes) -> MessageWeight:
        """The weight of a message, once it is not too early. Raises ProtocolError: too many elements."""
        weight, now = weigh_message(data), self._paces.clock()
        if (pause_s := max(self._own.take(weight.total, now), self._share.bucket.take(weight.total, now))) > 0:
            await self._paces.sleep(pause_s)
        return weight

    @contextlib.asynccontextmanager
    async def turn(self, weight: MessageWeight) -> AsyncIterator[None]:
        """Around the work on a message of that weight, which must not wait for anything."""
        if weight.at_once <= HEAVY:
            yield
            return
        async with self._share.turn, self._paces.heavy_turn():
            yield


class StreamPaces:
    """The paces of all streams, by namespace."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.clock = clock
        self.sleep = sleep
        self._shares: dict[str, _Share] = {}
        self._heavy = asyncio.Lock()  # first come, first served, and of each namespace one waits for it
        self._rests_until_s = 0.0

    def begin(self, namespace: str) -> StreamPace:
        """That of a new stream."""
        now = self.clock()
        if len(self._shares) >= _MOST_SHARES:
            self._shares = {name: share for name, share in self._shares.items() if not share.bucket.is_full(now)}
        return StreamPace(self, self._shares.setdefault(namespace, _Share(now)))

    @contextlib.asynccontextmanager
    async def heavy_turn(self) -> AsyncIterator[None]:
        """Around the work on a heavy message, of all namespaces one at a time."""
        async with self._heavy:
            if (rest_s := self._rests_until_s - self.clock()) > 0:
                await self.sleep(rest_s)
            began = self.clock()
            try:
                yield
            finally:
                ended = self.clock()
                self._rests_until_s = ended + min(_MOST_REST_S, REST * (ended - began))
