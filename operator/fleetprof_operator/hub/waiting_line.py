"""The requests that no hub has taken yet: each namespace's line, in which the oldest comes first, then the least name.

Guarantees: the order follows from the requests alone, so an operator that is started anew comes to the same one; who is
first learns of it at once, and of each step only those learn whom it concerns.
"""

import asyncio
from bisect import bisect_left, insort
from dataclasses import dataclass, field

Turn = tuple[str, str]
"""The time at which a request was made, as Kubernetes writes it (RFC 3339 in UTC), and its name."""


@dataclass(slots=True)
class _Line:
    turns: list[Turn] = field(default_factory=list)  # in order; two requests of a namespace have two names
    of_uid: dict[str, Turn] = field(default_factory=dict)
    held: list[Turn] = field(default_factory=list)
    first: dict[Turn, asyncio.Event] = field(default_factory=dict)  # set for who is first, of those that wait for it


class WaitingLine:
    """A request is known by its uid."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def join(self, namespace: str, uid: str, turn: Turn) -> None:
        """The request waits from now on, if it did not."""
        line = self._lines.setdefault(namespace, _Line())
        if uid not in line.of_uid:
            line.of_uid[uid] = turn
            insort(line.turns, turn)

    def hold(self, namespace: str, uid: str, turn: Turn) -> None:
        """The hub may take no more at present: the request waits, and so do all behind it."""
        self.join(namespace, uid, turn)
        line = self._lines[namespace]
        if line.of_uid[uid] not in line.held:
            insort(line.held, line.of_uid[uid])

    def leave(self, namespace: str, uid: str) -> None:
        """The request waits no more, if it did."""
        line = self._lines.get(namespace)
        if line is None or (turn := line.of_uid.pop(uid, None)) is None:
            return
        del line.turns[bisect_left(line.turns, turn)]
        if turn in line.held:
            line.held.remove(turn)
        if not line.turns:
            del self._lines[namespace]
        elif first := line.first.get(line.turns[0]):
            first.set()

    def find_place(self, namespace: str, turn: Turn) -> int:
        """1 for a request that no other of its namespace comes before."""
        line = self._lines.get(namespace)
        return 1 + (bisect_left(line.turns, turn) if line is not None else 0)

    def is_held(self, namespace: str, turn: Turn) -> bool:
        """Tells whether one that comes before is: else those before are just being taken."""
        line = self._lines.get(namespace)
        return line is not None and bool(line.held) and line.held[0] < turn

    async def wait_to_be_first(self, namespace: str, turn: Turn, timeout_s: float) -> None:
        """Returns when the request that waits at this turn is the first of its line, or after that time."""
        line = self._lines.get(namespace)
        if line is None or self.find_place(namespace, turn) == 1:
            return
        first = line.first.setdefault(turn, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_s):
                await first.wait()
        except TimeoutError:
            pass
        finally:
            line.first.pop(turn, None)
