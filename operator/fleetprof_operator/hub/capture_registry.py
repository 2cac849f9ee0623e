"""The captures that a hub remembers, and the tasks of those that go on.

Guarantees: all that are unfinished, and the newest of the finished up to a number and a size, in which no namespace
takes another's part; a capture is begun once.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence

from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.report.recording import covers, learn

from fleetprof_operator.hub.capture.request_capture import RequestCapture
from fleetprof_operator.hub.planning.places import Contender, NoPlace, explain, order_contenders
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.submission import UnknownCapture


def _contend(capture: RequestCapture) -> Contender:
    return Contender(capture.ledger.uid, capture.ledger.namespace, capture.queue_key)


class CaptureRegistry:
    """`by_uid`: those remembered; `tasks` of those that go on."""

    def __init__(self, settings: HubSettings) -> None:
        self.by_uid: dict[str, RequestCapture] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._settings = settings
        self._line: Sequence[str] = ()  # those that are ready for a place, as of
        self._lined_up_unix_ns = 0

    def begin(self, capture: RequestCapture) -> None:
        """Remembers a capture and lets it go."""
        uid = capture.ledger.uid
        self.by_uid[uid] = capture
        task = asyncio.create_task(capture.run())
        self.tasks[uid] = task
        task.add_done_callback(lambda _: self._end(uid))

    def find(self, ref: str) -> RequestCapture:
        """The capture of that uid or name. Raises UnknownCapture."""
        if ref in self.by_uid:
            return self.by_uid[ref]
        named = [c for c in self.by_uid.values() if c.ledger.name == ref]
        if len(named) == 1:
            return named[0]
        if not named:
            raise UnknownCapture(f"no capture has the id or name {ref[:200]!r}; `fleetprof list` shows all")
        uids = ", ".join(sorted(c.ledger.uid for c in named)[:5])
        raise UnknownCapture(f"{len(named)} captures are named {ref!r}; use an id: {uids}")

    def count_waiting(self) -> Counter[str]:
        """The number of captures without a place that go on, by namespace."""
        return Counter(c.ledger.namespace for c in self._unfinished() if not c.holds_place)

    def claim_place(self, uid: str, now_unix_ns: int) -> NoPlace | None:
        """Gives a request its place, or says why not. Who waits is lined up once in a while, however many ask."""
        capture = self.by_uid[uid]
        if capture.holds_place:
            return None
        capture.want_place()
        most_of_namespace = self._settings.max_captures_per_namespace
        contenders = [_contend(c) for c in self._unfinished() if c.wants_place]
        held = Counter(c.ledger.namespace for c in self._unfinished() if c.holds_place)
        if now_unix_ns - self._lined_up_unix_ns >= self._settings.look_again_ns or uid not in self._line:
            self._line = order_contenders(held, contenders, most_of_namespace)
            self._lined_up_unix_ns = now_unix_ns
        problem = explain(_contend(capture), held, contenders, self._line, self._settings.max_captures)
        if problem is None:
            capture.take_place()
            self._lined_up_unix_ns = 0
        return problem

    def _unfinished(self) -> list[RequestCapture]:
        return [self.by_uid[uid] for uid in self.tasks]

    def describe_holder(self, targets: Sequence[RankTarget]) -> str:
        """A sentence about an unfinished capture that holds one of these ranks; empty when none does."""
        return next((sentence for capture in self.by_uid.values() if (sentence := capture.describe_hold(targets))), "")

    def find_earlier(self, uid: str, targets: Sequence[RankTarget]) -> list[str]:
        """The names of the captures that wait for one of these ranks since before this one."""
        ours, namespace = self.by_uid[uid].queue_key, self.by_uid[uid].ledger.namespace
        earlier = [c for c in self.by_uid.values() if c.queue_key < ours and c.ledger.namespace == namespace]
        waiting = [c for c in earlier if c.waits_for(targets)]
        return [c.ledger.name for c in sorted(waiting, key=lambda c: c.queue_key)]

    def estimate(self, namespace: str, target: str, options: Collection[str]) -> RecordingEstimate | None:
        """The latest capture's estimate for this target of one with these options; None where none does."""
        known = [
            c for c in self.by_uid.values() if (c.ledger.namespace, c.request.target_text()) == (namespace, target)
        ]
        for capture in sorted(known, key=lambda c: c.ledger.submitted_unix_ns, reverse=True):
            costs = [entry.recording_cost for entry in capture.ledger.entries if entry.recording_cost is not None]
            if costs and covers(capture.request.spec.options, options) and (learned := learn(costs)):
                return learned
        return None

    def _end(self, uid: str) -> None:
        self.tasks.pop(uid, None)
        finished = {c.ledger.uid: c for c in self.by_uid.values() if c.finished and c.ledger.uid not in self.tasks}
        sizes = {known: capture.count_bytes() for known, capture in finished.items()}
        shares = Counter[str]()
        for known, capture in finished.items():
            shares[capture.ledger.namespace] += sizes[known]
        while len(finished) > self._settings.max_remembered or shares.total() > self._settings.max_remembered_bytes:
            # The oldest of who takes most.
            namespace = shares.most_common(1)[0][0]
            of_namespace = [c for c in finished.values() if c.ledger.namespace == namespace]
            oldest = min(of_namespace, key=lambda c: c.ledger.submitted_unix_ns).ledger.uid
            shares[namespace] -= sizes[oldest]
            del finished[oldest], self.by_uid[oldest]
