"""What all stages of one request share: its ledger's book, what the store holds, and the signal that either changed.

Every stage reads here what is to be done and says here what it did: to the book what the ledger keeps, which only the
book writes. No stage keeps a copy, and none calls another's inside. That is why a request can go on from any state.

Guarantees: every change of the ledger that is noted reaches the watchers and, in the end, the store; a rank whose trace
is known to be stored is never given up as failed.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry, Reason
from fleetprof_api.request import ProfileRequest

from fleetprof_operator.hub.capture.environment import CaptureEnvironment
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.ledger.writer import LedgerWriter
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.settings import SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRun:
    """A canary under way. `reserved` are (sidecar, process) of all ranks that wait for it: nobody else has them."""

    capture_id: str
    target: RankTarget
    order: pb.HubMessage
    reserved: frozenset[tuple[str, str]]


class PlaceState(Enum):
    """Whether a request is ready for its capture, and has a place for it (`planning/places.py`)."""

    NONE = "none"
    WANTED = "wanted"
    HELD = "held"


class CaptureState:
    """One request's state; for the hub's event loop only. `version` grows with every change that a status shows.

    `book` owns the ledger, `ledger` is its view. `stored` has (sidecar, process) of each rank whose trace, or summary
    where that was asked for, the store holds, and `traces_stored` those whose trace was seen to arrive; `report_made`
    says that the report is there, `hurried` that a cancel waits for nobody's confirmation, `canary` is the one that
    records at this moment, `canary_step` the first step that the latest one was to record, `queued` has (sidecar,
    process) of the ranks that it waits for until it has them, `looks_for_pods` says that it may still find any of its
    namespace, and `queue_position` is its place among those who do, or
    among those that wait for a place (1 comes next; 0: it waits for nobody).
    With `fails_fast` only what comes by itself is waited for (`arm_stage.is_hopeless`) from `patient_until_unix_ns`
    on, else everything until the deadline.
    """

    def __init__(
        self, request: ProfileRequest, book: LedgerBook, hub: CaptureEnvironment, *, fails_fast: bool = False
    ) -> None:
        self.request = request
        self.fails_fast = fails_fast
        self.book = book
        self.ledger = ledger = book.ledger
        self.hub = hub
        self.stored: set[tuple[str, str]] = set()
        self.traces_stored: set[tuple[str, str]] = set()
        self.canary: CanaryRun | None = None
        self.canary_step = 0
        self.queued: frozenset[tuple[str, str]] = frozenset()
        self.looks_for_pods = False
        self.queue_position = 0
        self.place = PlaceState.NONE
        self.report_made = False
        self.hurried = False
        self.version = 0
        self.began_unix_ns = hub.clock()
        self.patient_until_unix_ns = 0
        key = keys.ledger_key(ledger.namespace, ledger.uid)
        self.writer = LedgerWriter(hub.calls, key, book.snapshot, hub.settings)
        self._poked = asyncio.Event()
        self._turned = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def deadline_unix_ns(self) -> int:
        """When the request ends at the latest, but for the analysis; it moves while the request waits in the queue."""
        ledger = self.ledger
        queued_ns = ledger.queued_ns
        if ledger.queued_since_unix_ns:
            queued_ns += max(0, self.hub.clock() - ledger.queued_since_unix_ns)
        return ledger.submitted_unix_ns + self.request.spec.active_deadline_seconds * SECOND_NS + queued_ns

    def wait_for(self, ranks: Iterable[RankTarget]) -> None:
        """No later request gets these ranks before it."""
        self.queued = frozenset((t.sidecar_id, t.process.process_id) for t in ranks)

    def enter_queue(self, position: int, ranks: Iterable[RankTarget]) -> None:
        """It waits for its turn with these ranks. That it does so, not each of its places, reaches the store."""
        self.wait_for(ranks)
        self.queue_position = position
        self.book.note_queued(True, self.hub.clock())

    def leave_queue(self) -> None:
        """It waits for nobody."""
        self.queue_position = 0
        self.book.note_queued(False, self.hub.clock())

    async def wait_for_news(self, seen_version: int) -> None:
        """Returns when the status is newer than that version."""
        while self.version == seen_version:
            await self._news.wait()

    def open_entries_of(self, sidecar_id: str) -> list[LedgerEntry]:
        """The lines of a sidecar's ranks that are not final."""
        return self.book.lines.open_of(sidecar_id)

    def send_all(self, message: pb.HubMessage) -> None:
        """To every sidecar that has a line which is not final."""
        for sidecar_id in self.book.lines.open_sidecars():
            self.hub.registry.send(sidecar_id, message)

    def give_up(self, entry: LedgerEntry, reason: Reason, message: str) -> None:
        """Ends a line with this reason; with its trace instead when the store holds that."""
        now = self.hub.clock()
        if (entry.sidecar_id, entry.process_id) in self.stored:
            self.book.mark_uploaded(entry, f"the trace is there, its samples may not be: {message}", now)
        else:
            self.book.fail(entry, reason, message, now)
        self.note_change()

    def note_change(self) -> None:
        """The ledger, or what the status shows beside it, is another: watchers, stages and the store learn of it."""
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()
        self.poke()
        self.writer.touch()
        if not self.book.lines.open_count:
            self._turned.set()

    def turn(self) -> None:
        """What is to be done has changed, beyond a line: `wait_for_turn` returns."""
        self._turned.set()
        self.poke()

    def poke(self) -> None:
        """Something happened that `wait` waits for, but nothing that a status shows."""
        self._poked.set()

    async def wait(self, until_unix_ns: int) -> None:
        """Until something happens, or that time."""
        await self._wait_for(self._poked, until_unix_ns)

    async def wait_for_turn(self, until_unix_ns: int) -> None:
        """Until no line is open any more, the user cancels, or that time; what single ranks tell wakes nobody."""
        await self._wait_for(self._turned, until_unix_ns)

    async def _wait_for(self, event: asyncio.Event, until_unix_ns: int) -> None:
        event.clear()
        try:
            async with asyncio.timeout(max(0, until_unix_ns - self.hub.clock()) / SECOND_NS):
                await event.wait()
        except TimeoutError:
            pass
