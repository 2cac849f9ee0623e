"""The state that all stages of a request share: its ledger's book, the store's content, the signal that either changed.

Every stage reads here what is to be done and says here what it did: to the book what the ledger keeps, which only the
book writes. No stage keeps a copy, and none calls another's inside. That is why a request can go on from any state.

Guarantees: every change of the ledger that is noted reaches the watchers and, in the end, the store; a rank whose trace
is known to be stored is never given up as failed.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry, Reason
from fleetprof_api.request import ProfileRequest

from fleetprof_operator.hub.capture.environment import CaptureEnvironment
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.ledger.writer import LedgerWriter
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.settings import SECOND_NS

Line = tuple[str, str]
"""A rank's line in the ledger, by its sidecar and its process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRun:
    """A canary under way. `reserved` are (sidecar, process) of all ranks that wait for it: nobody else has them."""

    capture_id: str
    target: RankTarget
    order: pb.HubMessage
    reserved: frozenset[Line]


class PlaceState(Enum):
    """The request is ready for its capture or not, and has a place for it (`planning/places.py`)."""

    NONE = "none"
    WANTED = "wanted"
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The things that a request holds and waits for at this moment, beside its ledger.

    `queued`: (sidecar, process) of the ranks that it waits for until it has them; with `looks_for_pods` it may still
    find any of its namespace. `queue_position`: its place among those who wait for ranks, or for a place (1 comes next;
    0: it waits for nobody). `canary` records at this moment; `canary_step` is the first step that the latest one was to
    record. With `hurried` a cancel waits for nobody's confirmation.
    """

    queued: frozenset[Line] = frozenset()
    looks_for_pods: bool = False
    queue_position: int = 0
    place: PlaceState = PlaceState.NONE
    canary: CanaryRun | None = None
    canary_step: int = 0
    report_made: bool = False
    hurried: bool = False
    patient_until_unix_ns: int = 0


class CaptureState:
    """One request's state; for the hub's event loop only. `version` grows with every change that a status shows.

    `book` owns the ledger, `ledger` is its view. What is beside the ledger, `standing`, is changed by the commands here
    alone. With `fails_fast` only what comes by itself is waited for (`arm_steps.is_hopeless`) from its
    `patient_until_unix_ns` on, else everything until the deadline.
    """

    def __init__(
        self, request: ProfileRequest, book: LedgerBook, hub: CaptureEnvironment, *, fails_fast: bool = False
    ) -> None:
        self.request = request
        self.fails_fast = fails_fast
        self.book = book
        self.ledger = ledger = book.ledger
        self.hub = hub
        self.version = 0
        self.began_unix_ns = hub.clock()
        key = keys.ledger_key(ledger.namespace, ledger.uid)
        self.writer = LedgerWriter(hub.calls, key, book.snapshot, hub.settings)
        self._standing = Standing()
        self._stored: set[Line] = set()  # whose trace, or summary where that was asked for, the store holds
        self._traces_stored: set[Line] = set()  # whose trace was seen to arrive
        self._poked = asyncio.Event()
        self._turned = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def standing(self) -> Standing:
        """The things that it holds and waits for now."""
        return self._standing

    @property
    def deadline_unix_ns(self) -> int:
        """The latest end of the request, but for the analysis; it moves while the request waits in the queue."""
        ledger = self.ledger
        queued_ns = ledger.queued_ns
        if ledger.queued_since_unix_ns:
            queued_ns += max(0, self.hub.clock() - ledger.queued_since_unix_ns)
        return ledger.submitted_unix_ns + self.request.spec.active_deadline_seconds * SECOND_NS + queued_ns

    # ------------------------------------------------------------ commands

    def wait_for(self, ranks: Iterable[RankTarget]) -> None:
        """No later request gets these ranks before it."""
        self._change(queued=frozenset((t.sidecar_id, t.process.process_id) for t in ranks))

    def look_for_pods(self, may_find_any: bool) -> None:
        """Says whether it may still find any rank of its namespace."""
        self._change(looks_for_pods=may_find_any)

    def enter_queue(self, position: int, ranks: Iterable[RankTarget]) -> None:
        """It waits for its turn with these ranks. That it does so, not each of its places, reaches the store."""
        self.wait_for(ranks)
        self._change(queue_position=position)
        self.book.note_queued(True, self.hub.clock())

    def leave_queue(self) -> None:
        """It waits for nobody."""
        self._change(queue_position=0)
        self.book.note_queued(False, self.hub.clock())

    def let_go(self) -> None:
        """It has no ranks, and needs no place."""
        self.leave_queue()
        self._change(place=PlaceState.NONE, queued=frozenset())

    def want_place(self) -> None:
        """It is ready for its capture."""
        if self._standing.place is PlaceState.NONE:
            self._change(place=PlaceState.WANTED)

    def take_place(self) -> None:
        """It is under way from now on."""
        self._change(place=PlaceState.HELD)

    def begin_canary(self, run: CanaryRun, first_step: int) -> None:
        """A canary records from now on."""
        self._change(canary=run, canary_step=first_step)

    def end_canary(self) -> None:
        """No canary records any more."""
        self._change(canary=None)

    def be_patient(self, until_unix_ns: int) -> None:
        """Waits until then for what may not come, with `fails_fast` too."""
        self._change(patient_until_unix_ns=until_unix_ns)

    def hurry(self) -> None:
        """A cancel waits for no sidecar's answer."""
        self._change(hurried=True)
        self.turn()

    def note_report(self) -> None:
        """The report is there."""
        self._change(report_made=True)

    def note_stored(self, line: Line, *, with_trace: bool = False) -> None:
        """The store holds what a rank was to give; `with_trace`: its whole trace was seen to arrive."""
        self._stored.add(line)
        if with_trace:
            self._traces_stored.add(line)

    def say(self, reason: str, message: str, now_unix_ns: int) -> None:
        """Says in the status what the request waits for."""
        if self.book.wait_for(reason, message, now_unix_ns):
            self.note_change()

    def end(self, reason: str, message: str, now_unix_ns: int) -> None:
        """The request ends before any of its ranks was asked."""
        self.let_go()
        self.book.conclude("False", reason, message, now_unix_ns)

    def _change(self, **changes: Any) -> None:
        self._standing = replace(self._standing, **changes)

    # ------------------------------------------------------------ what is known, and waited for

    def is_stored(self, line: Line) -> bool:
        """Tells whether the store is known to hold what that rank was to give."""
        return line in self._stored

    def is_trace_stored(self, line: Line) -> bool:
        """Tells whether that rank's whole trace was seen to arrive."""
        return line in self._traces_stored

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
        if self.is_stored((entry.sidecar_id, entry.process_id)):
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
        """Tells that the work to do has changed, beyond a line: `wait_for_turn` returns."""
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
