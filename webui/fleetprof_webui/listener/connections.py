"""Takes connections for the web server within limits, as hub and webhook do: whoever reaches its port may open some.

Guarantees: at most `most` connections, and `most_of_one` of one address; when these are taken, the longest unused one
goes, of the address that has the most: whoever connects anew is heard. One that is silent, or whose request does not
come, ends after SILENT_S, and one whose body does not after BODY_S; streams and answers under way go on.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

SILENT_S: Final = 10.0
BODY_S: Final = 30.0
_LOOK_S: Final = 1.0

Admits = Callable[[Any, Any], bool]
"""(address of the client, of the server) → whether it is heard at all."""


class ConnectionLimits:
    """Those of one server, by its event loop."""

    def __init__(self, most: int, most_of_one: int, admits: Admits | None = None) -> None:
        self._admits = admits
        self._most = most
        self._most_of_one = most_of_one
        self._open: dict[LimitedConnection, None] = {}  # in the order of their coming
        self._next_look: asyncio.TimerHandle | None = None

    def make(self, **arguments: Any) -> "LimitedConnection":
        """The protocol of a connection that has come: what uvicorn calls a protocol class."""
        return LimitedConnection(self, **arguments)

    def take(self, connection: "LimitedConnection") -> None:
        """Counts it, and ends another where there are too many; itself, where all are in use, or it is not admitted."""
        if self._admits is not None and not self._admits(connection.client, connection.server):
            connection.abort()
            return
        counts = Counter(one.address for one in self._open)
        if counts[connection.address] >= self._most_of_one:
            self._end_unused(connection.address)
        elif len(self._open) >= self._most:
            self._end_unused(counts.most_common(1)[0][0])
        self._open[connection] = None
        if len(self._open) > self._most or counts[connection.address] > self._most_of_one:
            connection.abort()
        elif self._next_look is None:
            self._next_look = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def forget(self, connection: "LimitedConnection") -> None:
        """It has ended."""
        self._open.pop(connection, None)

    def _end_unused(self, address: str) -> None:
        unused = [one for one in self._open if one.address == address and not one.is_busy()]
        if unused:
            min(unused, key=lambda one: one.since).abort()

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self._open):
            if now - connection.since > (BODY_S if connection.is_busy() else SILENT_S):
                if connection.is_busy() and not connection.awaits_body():
                    continue
                connection.abort()
        self._next_look = asyncio.get_running_loop().call_later(_LOOK_S, self._look) if self._open else None


class LimitedConnection(H11Protocol):
    """One of them. `since`: when its peer was last done with something, or came."""

    def __init__(self, connections: ConnectionLimits, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._counted = connections
        self.address = ""
        self.since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Of asyncio."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.since = self.loop.time()
        self._counted.take(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Of asyncio."""
        self._counted.forget(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Of uvicorn: whenever something has come."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self.since = self.loop.time()

    def on_response_complete(self) -> None:
        """Of uvicorn."""
        self.since = self.loop.time()
        super().on_response_complete()

    def is_busy(self) -> bool:
        """Whether a request of it is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def awaits_body(self) -> bool:
        """Whether the request under way is still coming."""
        return self.is_busy() and bool(self.cycle.more_body)

    def abort(self) -> None:
        """Ends it without a word; it counts no more."""
        self._counted.forget(self)
        self.transport.abort()
