"""The connections of a server that stay when there are too many: those with a request under way.

Guarantees: pure, with the time passed in (seconds). A new connection has room unless all that could go for it are in
use: the longest unused one goes, of its own address where that has its share, else of the address that has most. So
silent connections, however many, keep out nobody who speaks at once, and none stays longer than its patience.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Connection = TypeVar("Connection", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The number of connections, of all and of one address, and the time that each may be silent."""

    most: int = 512
    most_of_one: int = 256  # an API server sends each review that comes while others are under way over its own
    patience_s: float = 10.0  # from the connection, its handshake included, to a request's header whole
    kept_s: float = 120.0  # after an answer, until the next one: longer than an API server keeps one (90 s)


@dataclass(slots=True)
class _Use:
    address: str
    since_s: float  # of the last change: taken, or a request's end
    until_s: float
    is_busy: bool = False


class ConnectionTable(Generic[Connection]):
    """The connections of one server within `limits`."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._uses: dict[Connection, _Use] = {}

    def take(self, connection: Connection, address: str, now_s: float) -> Connection | None:
        """Adds a connection; the one that has to go for it, which may be that connection itself."""
        counts = Counter(use.address for use in self._uses.values())
        has_share = counts[address] >= self._limits.most_of_one
        leaving = None
        if has_share or len(self._uses) >= self._limits.most:
            may_go = [
                (-counts[use.address], use.since_s, place)
                for place, use in enumerate(self._uses.values())
                if not use.is_busy and (use.address == address or not has_share)
            ]
            if not may_go:
                return connection
            leaving = list(self._uses)[min(may_go)[-1]]
            del self._uses[leaving]
        self._uses[connection] = _Use(address, now_s, now_s + self._limits.patience_s)
        return leaving

    def begin(self, connection: Connection) -> None:
        """A request is under way."""
        if (use := self._uses.get(connection)) is not None:
            use.is_busy = True

    def end(self, connection: Connection, now_s: float) -> None:
        """The request is answered."""
        if (use := self._uses.get(connection)) is not None and use.is_busy:
            use.is_busy = False
            use.since_s, use.until_s = now_s, now_s + self._limits.kept_s

    def leave(self, connection: Connection) -> None:
        """The connection has ended; more than once is no error."""
        self._uses.pop(connection, None)

    def remove_overdue(self, now_s: float) -> list[Connection]:
        """Takes out and gives those whose patience is over."""
        found = [one for one, use in self._uses.items() if not use.is_busy and use.until_s <= now_s]
        for one in found:
            del self._uses[one]
        return found

    def __len__(self) -> int:
        return len(self._uses)
