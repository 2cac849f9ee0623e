"""The requests of which a hub may take no more at present: each namespace's line, in which the oldest comes first.

Guarantees: pure; the order follows from the requests alone, so an operator that is started anew comes to the same one.
"""


class WaitingLine:
    """A request is known by its uid; `made` is when it was made, as Kubernetes writes it (RFC 3339 in UTC)."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, str]] = {}

    def join(self, namespace: str, uid: str, made: str) -> None:
        """The request waits from now on."""
        self._lines.setdefault(namespace, {})[uid] = made

    def leave(self, namespace: str, uid: str) -> None:
        """The request waits no more, if it did."""
        line = self._lines.get(namespace, {})
        line.pop(uid, None)
        if not line:
            self._lines.pop(namespace, None)

    def find_place(self, namespace: str, uid: str, made: str) -> int:
        """1 for a request that no other of its namespace comes before."""
        line = self._lines.get(namespace, {})
        return 1 + sum((its_made, its_uid) < (made, uid) for its_uid, its_made in line.items())
