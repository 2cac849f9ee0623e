"""The captures that a sidecar holds, each with its machine, its line in the journal and what its changes set off.

Guarantees: a change that matters is in the journal before anything follows from it, and before the hub hears of it; a
fault of ours in one capture ends that one. For the event loop only; nothing here waits for longer than a small synced
write.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

import msgspec
from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar.capture.events import Cancel, Event
from fleetprof_sidecar.capture.machine import advance, resume
from fleetprof_sidecar.capture.process_capture import CaptureKey, Effect, ProcessCapture
from fleetprof_sidecar.captures.leftovers import Leftovers
from fleetprof_sidecar.captures.order_desk import OrderDesk
from fleetprof_sidecar.captures.traces_directory import TraceFile
from fleetprof_sidecar.captures.work import CaptureWork
from fleetprof_sidecar.delivery.spool import Spool
from fleetprof_sidecar.hub.messages import make_event
from fleetprof_sidecar.hub.outbox import HubSender
from fleetprof_sidecar.samples.rank_samples import after_window_ns

log = logging.getLogger(__name__)


class HeldCaptures:
    """By (capture, process). `work` gets what takes time, and brings its events back to `apply`."""

    def __init__(
        self,
        *,
        desk: OrderDesk,
        spool: Spool,
        leftovers: Leftovers,
        work: CaptureWork,
        hub: HubSender,
        clock: Callable[[], int],
    ) -> None:
        self._desk = desk
        self._spool = spool
        self._leftovers = leftovers
        self._work = work
        self._hub = hub
        self._clock = clock
        self._captures: dict[CaptureKey, ProcessCapture] = {}
        self._next_change = asyncio.Event()

    def __getitem__(self, key: CaptureKey) -> ProcessCapture:
        return self._captures[key]

    def __contains__(self, key: CaptureKey) -> bool:
        return key in self._captures

    def __iter__(self) -> Iterator[CaptureKey]:
        return iter(list(self._captures))

    def __len__(self) -> int:
        return len(self._captures)

    def values(self) -> list[ProcessCapture]:
        """All of them, the oldest first."""
        return list(self._captures.values())

    async def wait_for_change(self) -> None:
        """Returns after the next change of any capture."""
        await self._next_change.wait()

    def restore(self) -> None:
        """Takes up what the journal holds, and what each capture there has to begin again."""
        for capture in self._spool.recorded():
            key = (capture.terms.capture_id, capture.terms.process_id)
            resumed, effects = resume(capture)
            self._store(key, resumed)
            if resumed.awaits_file:
                self._desk.take_up(resumed)
                self._work.begin_samples(key, resumed)
            self._perform(key, effects)
        self._spool.drop_orphans(self.values())

    def add(self, key: CaptureKey, capture: ProcessCapture) -> None:
        """Takes a new one; the hub hears of it."""
        self._store(key, capture)
        _tell(capture, "asked")
        self.report(capture)

    def remove(self, key: CaptureKey) -> None:
        """Lets one go that is over, with its files."""
        capture = self._captures.pop(key)
        if capture.armed_unix_ns:
            self._leftovers.expect(capture, self._clock())
        self._leftovers.drop_finished(capture, self._is_awaited)
        self._spool.forget(capture)
        self._note_change()

    def owner_of(self, file: TraceFile) -> CaptureKey | None:
        """The capture that waits for this file: never one of another request, as the name begins with its id."""
        for key, capture in self._captures.items():
            if capture.terms.trace_id == file.stem and (capture.awaits_file or capture.file_name == file.name):
                return key
        return None

    def report(self, capture: ProcessCapture) -> None:
        """Tells the hub all that is known of one."""
        self._hub.send(hub_pb2.SidecarMessage(event=make_event(capture)))

    def apply(self, key: CaptureKey, event: Event) -> None:
        """Something happened to a capture; what follows is done. One that is not held any more changes nothing."""
        try:
            self._proceed(key, event)
        except Exception as problem:
            # Our own fault in one capture must not end the others.
            log.exception("%s could not be handled", event, extra={"capture": key[0], "process_id": key[1]})
            if not isinstance(event, Cancel):
                message = f"the sidecar failed at {type(event).__name__}: {problem}"
                self.apply(key, Cancel(Reason.INTERNAL, message, self._clock()))

    def _proceed(self, key: CaptureKey, event: Event) -> None:
        before = self._captures.get(key)
        if before is None:
            return
        after, effects = advance(before, event)
        if after is not before:
            self._store(key, after)
        if after.state != before.state:
            _tell(after, f"{before.state.lower()} → {after.state.lower()} {after.reason or ''} {after.message}".strip())
        self._perform(key, effects)

    def _store(self, key: CaptureKey, capture: ProcessCapture) -> None:
        before = self._captures.get(key)
        self._captures[key] = capture
        self._note_change()
        if before is not None and _lasting(before) == _lasting(capture):
            return
        try:
            self._spool.record(capture)
        except OSError as problem:
            # The capture goes on; only a kill in this state would now lose it.
            _tell(capture, f"the journal cannot be written: {problem}", logging.ERROR)

    def _perform(self, key: CaptureKey, effects: list[Effect]) -> None:
        for effect in effects:
            capture = self._captures[key]
            match effect:
                case Effect.REPORT:
                    self.report(capture)
                case Effect.WITHDRAW_ORDER:
                    self._desk.withdraw(capture)
                case Effect.CANCEL_IN_PROCESS:
                    self._desk.cancel_in_process(capture)
                case Effect.TELL_AGENT_DONE:
                    after_ns = 0 if capture.is_final else after_window_ns(capture.terms)
                    self._desk.tell_done(capture, after_ns)
                case Effect.COMPRESS:
                    self._work.compress(key, capture, self)
                case Effect.GATHER_SAMPLES:
                    self._work.gather_samples(key, capture, self)
                case Effect.UPLOAD_TRACE:
                    self._work.deliver(key, capture, hub_pb2.TRACE, self)
                case Effect.UPLOAD_SAMPLES:
                    self._work.deliver(key, capture, hub_pb2.SAMPLES, self)
                case Effect.SUMMARISE:
                    self._work.summarise(key, capture, self)
                case Effect.UPLOAD_SUMMARY:
                    self._work.deliver(key, capture, hub_pb2.SUMMARY, self)
                case Effect.STOP_WORK:
                    self._work.stop(key)
                case Effect.DISCARD:
                    self._work.end_samples(key)
                    self._spool.drop_files(capture)
                    self._leftovers.drop_finished(capture, self._is_awaited)
                    if capture.armed_unix_ns and capture.state == RankState.FAILED:
                        self._leftovers.expect(capture, self._clock())

    def _note_change(self) -> None:
        # Who waits now goes on; who waits from now on waits for the next one.
        self._next_change.set()
        self._next_change = asyncio.Event()

    def _is_awaited(self, file: TraceFile) -> bool:
        return self.owner_of(file) is not None


def _lasting(capture: ProcessCapture) -> ProcessCapture:
    """Without what a restart finds out again by itself: not worth a synced write."""
    return msgspec.structs.replace(capture, tmp_bytes=None, last_sign_unix_ns=0, due_unix_ns=0)


def _tell(capture: ProcessCapture, message: str, level: int = logging.INFO) -> None:
    log.log(level, message, extra={"capture": capture.terms.capture_id, "process_id": capture.terms.process_id})
