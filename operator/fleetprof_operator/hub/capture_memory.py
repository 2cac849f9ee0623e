"""The captures that a hub remembers, and the tasks of those that go on.

Guarantees: all that are unfinished, and the newest of the finished up to a bound; a capture is begun once.
"""

import asyncio
from collections.abc import Sequence

from fleetprof_operator.hub.capture import Capture
from fleetprof_operator.hub.resolution import RankTarget
from fleetprof_operator.hub.submission import UnknownCapture


class CaptureMemory:
    """`captures` by uid; `tasks` of those that go on."""

    def __init__(self, max_finished: int) -> None:
        self.captures: dict[str, Capture] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._max_finished = max_finished

    def begin(self, capture: Capture) -> None:
        """Remembers a capture and lets it go."""
        uid = capture.ledger.uid
        self.captures[uid] = capture
        task = asyncio.create_task(capture.run())
        self.tasks[uid] = task
        task.add_done_callback(lambda _: self._end(uid))

    def find(self, ref: str) -> Capture:
        """The capture of that uid or name. Raises UnknownCapture."""
        if ref in self.captures:
            return self.captures[ref]
        named = [c for c in self.captures.values() if c.ledger.name == ref]
        if len(named) == 1:
            return named[0]
        if not named:
            raise UnknownCapture(f"no capture has the id or name {ref[:200]!r}; `fleetprof list` shows all")
        uids = ", ".join(sorted(c.ledger.uid for c in named)[:5])
        raise UnknownCapture(f"{len(named)} captures are named {ref!r}; use an id: {uids}")

    def unfinished_namespaces(self) -> list[str]:
        """The namespace of each capture that goes on."""
        return [self.captures[uid].ledger.namespace for uid in self.tasks]

    def describe_holder(self, targets: Sequence[RankTarget]) -> str:
        """A sentence about an unfinished capture that holds one of these ranks; empty when none does."""
        return next((said for capture in self.captures.values() if (said := capture.describe_hold(targets))), "")

    def _end(self, uid: str) -> None:
        self.tasks.pop(uid, None)
        finished = [c for c in self.captures.values() if c.finished and c.ledger.uid not in self.tasks]
        if len(finished) > self._max_finished:
            oldest = min(finished, key=lambda c: c.ledger.submitted_unix_ns)
            del self.captures[oldest.ledger.uid]
