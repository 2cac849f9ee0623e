"""Takes connections for the web server within limits: whoever reaches its port may open some.

Guarantees: all our servers have one rule for who stays (`connection_table`). One that is silent, or whose request does
not come, ends after its patience, and one whose body does not after BODY_S; streams and answers under way go on.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from fleetprof_api.process.connection_table import ConnectionLimits, ConnectionTable
from uvicorn.protocols.http.h11_impl import H11Protocol

BODY_S: Final = 30.0
_LOOK_S: Final = 1.0

Admits = Callable[[Any, Any], bool]
"""(address of the client, of the server) → whether it is heard at all."""


class LimitedConnections:
    """The connections of one server, by its event loop."""

    def __init__(self, limits: ConnectionLimits, admits: Admits | None = None) -> None:
        self._admits = admits
        self.table: ConnectionTable[LimitedConnection] = ConnectionTable(limits)
        self._next_look: asyncio.TimerHandle | None = None

    def make(self, **arguments: Any) -> "LimitedConnection":
        """The protocol of a connection that has come: what uvicorn calls a protocol class."""
        return LimitedConnection(self, **arguments)

    def take(self, connection: "LimitedConnection") -> None:
        """Counts it, and ends another where there are too many; itself, where all are in use, or it is not admitted."""
        if self._admits is not None and not self._admits(connection.client, connection.server):
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        address = connection.client[0] if connection.client else ""
        if (leaving := self.table.take(connection, address, loop.time())) is not None:
            leaving.abort()
        if self._next_look is None:
            self._next_look = loop.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in self.table.remove_overdue(loop.time()):
            connection.abort()
        self._next_look = loop.call_later(_LOOK_S, self._look) if self.table else None


class LimitedConnection(H11Protocol):
    """One of them."""

    def __init__(self, connections: LimitedConnections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._counted = connections

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        super().connection_made(transport)
        self._counted.take(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._counted.table.leave(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Called by uvicorn whenever something has come."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._counted.table.begin(self)
            self.loop.call_later(BODY_S, self._end_without_body, self.cycle)

    def on_response_complete(self) -> None:
        """See uvicorn."""
        self._counted.table.end(self, self.loop.time())
        super().on_response_complete()

    def abort(self) -> None:
        """Ends it without a word; it counts no more."""
        self._counted.table.leave(self)
        self.transport.abort()

    def _end_without_body(self, cycle: Any) -> None:
        if self.cycle is cycle and cycle.more_body and not cycle.response_complete:
            self.abort()
