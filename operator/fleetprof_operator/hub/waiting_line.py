"""The requests that no hub has taken yet: each namespace's line, in which the oldest comes first, then the least name.

Guarantees: pure; the order follows from the requests alone, so an operator that is started anew comes to the same one.
"""

from dataclasses import dataclass

Turn = tuple[str, str]
"""When a request was made, as Kubernetes writes it (RFC 3339 in UTC), and its name."""


@dataclass(slots=True)
class _Waiting:
    turn: Turn
    is_held: bool = False


class WaitingLine:
    """A request is known by its uid."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, _Waiting]] = {}

    def join(self, namespace: str, uid: str, turn: Turn) -> None:
        """The request waits from now on, if it did not."""
        self._lines.setdefault(namespace, {}).setdefault(uid, _Waiting(turn))

    def hold(self, namespace: str, uid: str, turn: Turn) -> None:
        """The hub may take no more at present: the request waits, and so do all behind it."""
        self.join(namespace, uid, turn)
        self._lines[namespace][uid].is_held = True

    def leave(self, namespace: str, uid: str) -> None:
        """The request waits no more, if it did."""
        line = self._lines.get(namespace, {})
        line.pop(uid, None)
        if not line:
            self._lines.pop(namespace, None)

    def find_place(self, namespace: str, turn: Turn) -> int:
        """1 for a request that no other of its namespace comes before."""
        return 1 + len(self._find_before(namespace, turn))

    def is_held(self, namespace: str, turn: Turn) -> bool:
        """Whether one that comes before is: else those before are just being taken."""
        return any(waiting.is_held for waiting in self._find_before(namespace, turn))

    def _find_before(self, namespace: str, turn: Turn) -> list[_Waiting]:
        return [waiting for waiting in self._lines.get(namespace, {}).values() if waiting.turn < turn]
