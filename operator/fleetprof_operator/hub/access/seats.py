"""Which connections stay when there are too many: those that have shown a grant.

Guarantees: pure, with the time passed in (seconds). There is always room for a new connection unless every one uploads:
the oldest connection that has shown nothing is closed for it, and none stays longer than the patience without showing
something. So silent connections, however many, keep out nobody who speaks at once.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Guest = TypeVar("Guest", bound=Hashable)


class Seats(Generic[Guest]):
    """`count` seats; who sits idle is asked to leave after `patience_s`."""

    def __init__(self, count: int, patience_s: float) -> None:
        self._count = count
        self._patience_s = patience_s
        self._idle: OrderedDict[Guest, float] = OrderedDict()  # since when, the longest first
        self._busy: set[Guest] = set()

    def take(self, guest: Guest, now_s: float) -> Guest | None:
        """Seats a guest; the one who has to go for it, who may be the guest itself."""
        leaving = None
        if len(self._idle) + len(self._busy) >= self._count:
            if not self._idle:
                return guest
            leaving, _ = self._idle.popitem(last=False)
        self._idle[guest] = now_s
        return leaving

    def begin(self, guest: Guest) -> None:
        """The guest showed that it is granted what it does now."""
        if self._idle.pop(guest, None) is not None:
            self._busy.add(guest)

    def end(self, guest: Guest, now_s: float) -> None:
        """It has done it, and may show something else."""
        if guest in self._busy:
            self._busy.remove(guest)
            self._idle[guest] = now_s

    def leave(self, guest: Guest) -> None:
        """It has gone; more than once is no error."""
        self._idle.pop(guest, None)
        self._busy.discard(guest)

    def overdue(self, now_s: float) -> list[Guest]:
        """Unseats those whose patience is over, and returns them."""
        found = []
        while self._idle:
            guest, since_s = next(iter(self._idle.items()))
            if now_s - since_s < self._patience_s:
                break
            del self._idle[guest]
            found.append(guest)
        return found
