"""Bodies of reviews, taken in within limits of bytes: each, each namespace's together, and all together.

Guarantees: no more is held than was reserved before; what is too large, or has no room now, is not read beyond its
head, which names the review to answer; a sender that is slow is given up on.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from fleetprof_api.errors import FleetprofError

from fleetprof_operator.injection.admission import read_head

MAX_BODY_BYTES: Final = 512 << 10
"""Twice what all annotations of an object may have together."""
MOST_OF_ONE_BYTES: Final = 8 << 20
MOST_BYTES: Final = 32 << 20
READ_S: Final = 2.0
"""As long as the API server waits for an answer about a pod."""
_HEAD_BYTES: Final = 2048


class NotTaken(FleetprofError):
    """A body is not read. `uid`: the review that is to be answered all the same, "" when that is not known."""

    def __init__(self, reason: str, message: str, uid: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.uid = uid


class ReviewBodies:
    """The bodies that are in memory now."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @asynccontextmanager
    async def take(self, request: web.Request) -> AsyncIterator[bytes]:
        """The body, for as long as it is worked on. Raises NotTaken."""
        try:
            async with asyncio.timeout(READ_S):
                head = await _read_until(request, b"", _HEAD_BYTES)
                uid, whose = read_head(head[:_HEAD_BYTES])
                size = self._reserve(request.content_length, whose, uid)
        except TimeoutError:
            raise NotTaken("TooSlow", f"the review did not come within {READ_S:g} s", "") from None
        try:
            try:
                async with asyncio.timeout(READ_S):
                    body = await _read_until(request, head, size + 1)
            except TimeoutError:
                raise NotTaken("TooSlow", f"the review did not come within {READ_S:g} s", uid) from None
            if len(body) > size:
                raise _too_large(uid)
            yield body
        finally:
            self._held[whose] -= size
            if self._held[whose] <= 0:
                del self._held[whose]

    def _reserve(self, announced: int | None, whose: str, uid: str) -> int:
        size = MAX_BODY_BYTES if announced is None else announced
        if size > MAX_BODY_BYTES:
            raise _too_large(uid)
        if self._held[whose] + size > MOST_OF_ONE_BYTES or self._held.total() + size > MOST_BYTES:
            raise NotTaken("Busy", "the webhook has too much to do; try again", uid)
        self._held[whose] += size
        return size


def _too_large(uid: str) -> NotTaken:
    return NotTaken("TooLarge", f"its description has more than {MAX_BODY_BYTES} bytes", uid)


async def _read_until(request: web.Request, body: bytes, size: int) -> bytes:
    """`body` and what follows, `size` bytes or a little more, less at its end."""
    parts, length = [body], len(body)
    while length < size:
        part = await request.content.readany()
        if not part:
            break
        parts.append(part)
        length += len(part)
    return b"".join(parts)
