"""Controls the captures of this sidecar: what hub, processes, directory and clock tell becomes each one's events.

What a capture makes of its events, and what follows from them, is in `held_captures`.

Guarantees: a kill at any moment loses no finished trace: after a restart the journal and the traces directory are read
again and everything goes on. Repeated commands change nothing. Everything here runs in one event loop and never waits
in it for a disk longer than a small synced write; polls are answered elsewhere.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar.capture.events import Cancel, FinalSeen, OrderRejected, PodEnded, TmpSeen, TraceWanted
from fleetprof_sidecar.capture.machine import begin
from fleetprof_sidecar.capture.order_limits import OverLimit, check_limits, check_room
from fleetprof_sidecar.capture.orders import options_of, read_terms
from fleetprof_sidecar.capture.process_capture import CaptureKey, ProcessCapture
from fleetprof_sidecar.capture.recording_history import RecordingHistory
from fleetprof_sidecar.capture.slowdown import SlowdownWatches
from fleetprof_sidecar.captures.event_translation import make_tick, translate
from fleetprof_sidecar.captures.headroom import Disk, disk_need_bytes
from fleetprof_sidecar.captures.held_captures import HeldCaptures
from fleetprof_sidecar.captures.leftovers import Leftovers
from fleetprof_sidecar.captures.order_desk import OrderDesk, find_occupant
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.captures.work import CaptureWork
from fleetprof_sidecar.delivery.spool import Spool
from fleetprof_sidecar.hub.messages import make_event, make_refusal
from fleetprof_sidecar.hub.outbox import HubSender
from fleetprof_sidecar.processes.events import Gone, ProcessEvent
from fleetprof_sidecar.processes.index import MAX_PROCESSES
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.samples.rank_recorders import RankRecorders

_SCAN_S: Final = 0.1
_SLOW_SCAN_S: Final = 1.0
# After a restart every living process polls within this time.
_RETURN_PATIENCE_NS: Final = 20_000_000_000
# A process's end is noticed about a second later (housekeeping.py), and then handed on.
_NOTICE_S: Final = 2.0
_MOST_HELD: Final = 2000

log = logging.getLogger(__name__)


class CaptureController:
    """All captures that were not released. `work` does what takes time; `recorders` are those that it begins."""

    def __init__(
        self,
        *,
        processes: Processes,
        traces: TracesDirectory,
        spool: Spool,
        work: CaptureWork,
        recorders: RankRecorders,
        hub: HubSender,
        history: RecordingHistory,
        storage_limit_bytes: int = 0,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._processes = processes
        self._traces = traces
        self._work = work
        self._recorders = recorders
        self._hub = hub
        self._clock = clock
        self._desk = OrderDesk(
            processes, traces.path, Disk(traces.path, spool.path, storage_limit_bytes), traces.profiler
        )
        self._history = history
        self._leftovers = Leftovers(traces, processes)
        self._held = HeldCaptures(
            desk=self._desk, spool=spool, leftovers=self._leftovers, work=work, hub=hub, clock=clock
        )
        self._unplaced: set[CaptureKey] = set()  # asked before a restart, and the process has not shown itself since
        self._slowdown = SlowdownWatches()
        self._begun_unix_ns = clock()
        self._draining = False

    # ------------------------------------------------------------ what the sidecar's other parts ask

    def restore(self) -> None:
        """Takes up what the journal holds. To be called once, in the event loop, before anything else."""
        self._held.restore()
        self._unplaced = {key for key in self._held if self._held[key].state == RankState.ASKED}
        if self._held:
            log.info("the journal holds %d captures", len(self._held))

    def held_events(self) -> list[hub_pb2.CaptureEvent]:
        """The latest event of every capture, for Hello."""
        return [make_event(capture) for capture in self._held.values()]

    async def run(self) -> None:
        """Watches the traces directory and the clock until cancelled; rests while nothing is outstanding."""
        while True:
            self.look(self._clock())
            try:
                async with asyncio.timeout(self._pause_s()):
                    await self._held.wait_for_change()
            except TimeoutError:
                continue
            # A burst of events is one look.
            await asyncio.sleep(_SCAN_S / 5)

    async def drain(self, patience_s: float, *, ends_with_pod: bool = False) -> None:
        """Accepts no more orders and takes back the undelivered ones; waits for what will not go on after a restart.

        That is: finished traces until they are stored, and captures whose process has ended until they say why. We are
        usually ended because the job has: its processes' ends are given the time to be noticed.
        `ends_with_pod`: there is no next start, so what is not done by then ends as lost.
        """
        self._draining = True
        for capture in self._held.values():
            if capture.state == RankState.ASKED:
                self._desk.withdraw(capture)
        try:
            async with asyncio.timeout(patience_s):
                if any(not capture.is_final for capture in self._held.values()):
                    await asyncio.sleep(_NOTICE_S)
                while any(self._ends_with_us(capture) for capture in self._held.values()):
                    await self._held.wait_for_change()
        except TimeoutError:
            kept = "they are lost with the pod" if ends_with_pod else "the spool keeps them for the next start"
            log.warning("stopped before every trace was uploaded; %s", kept)
        if ends_with_pod:
            for key in self._held:
                self._held.apply(key, PodEnded(self._clock()))

    def _ends_with_us(self, capture: ProcessCapture) -> bool:
        if capture.is_final:
            return False
        process_ended = capture.orderly_end is not None or self._processes.get(capture.terms.process_id) is None
        return process_ended or bool(capture.file_name or capture.trace)

    # ------------------------------------------------------------ what the hub says

    def receive(self, message: hub_pb2.HubMessage) -> None:
        """Does what a message of the hub orders of captures."""
        match message.WhichOneof("body"):
            case "arm":
                self._arm_all(message.arm)
            case "cancel":
                cancel = message.cancel
                reason = Reason(cancel.reason) if cancel.reason in set(Reason) else Reason.CANCELLED
                for key in self._keys_of(cancel.capture_id):
                    self._cancel(key, reason, cancel.message or "cancelled")
            case "upload_grant" | "upload_verdict" as body:
                answer = getattr(message, body)
                self._work.answer((answer.capture_id, answer.process_id), answer.object, answer)
            case "fetch_traces":
                for process_id in message.fetch_traces.process_ids:
                    self._held.apply((message.fetch_traces.capture_id, process_id), TraceWanted(self._clock()))
            case "release":
                for key in self._keys_of(message.release.capture_id):
                    self._release(key)

    def _arm_all(self, arm: hub_pb2.Arm) -> None:
        now = self._clock()
        try:
            check_limits(arm, now)
            check_room(arm, self._held.values())
        except OverLimit as problem:
            log.warning("the hub sent an order that is not allowed: %s", problem)
            for order in arm.orders[:MAX_PROCESSES]:
                self._hub.send(make_refusal(arm, order, Reason.OVER_LIMIT, str(problem), now))
            return
        for order in arm.orders:
            self._arm(arm, order)

    def _arm(self, arm: hub_pb2.Arm, order: hub_pb2.Order) -> None:
        key = (arm.capture_id, order.process_id)
        if key in self._held:
            self._held.report(self._held[key])
            return
        if self._draining:
            return
        now = self._clock()
        try:
            known = self._history.of(order.process_id, options_of(arm))
            recorded = self._history.recorded(order.process_id)
            terms = read_terms(arm, order, self._processes.get(order.process_id), known, recorded)
        except ValueError as problem:
            log.warning("the hub sent an order that makes no sense: %s", problem)
            self._hub.send(make_refusal(arm, order, Reason.INTERNAL, str(problem), now))
            return
        occupant = find_occupant(self._held.values(), order.process_id, now)
        self._make_room()
        self._held.add(key, begin(terms, now))
        if occupant:
            message = f"capture {occupant} has not ended in this process; ask again when it has"
            self._held.apply(key, OrderRejected(Reason.BUSY, message, now))
        else:
            self._place(key)

    def _place(self, key: CaptureKey) -> None:
        self._unplaced.discard(key)
        self._work.begin_samples(key, self._held[key])
        promised = sum(disk_need_bytes(c.terms) for c in self._held.values() if c.awaits_file and not c.is_final)
        promised -= disk_need_bytes(self._held[key].terms)
        refused = self._desk.place(self._held[key], self._clock(), promised)
        if refused is not None:
            self._held.apply(key, refused)

    def _release(self, key: CaptureKey) -> None:
        if not self._held[key].is_final:
            self._held.apply(key, Cancel(Reason.CANCELLED, "the hub ended this capture", self._clock()))
        self._work.stop(key)
        self._history.note(self._held[key])
        self._slowdown.forget(key)
        self._unplaced.discard(key)
        self._held.remove(key)

    def _make_room(self) -> None:
        """Forgets the oldest captures that are over, should the hub never release any."""
        for key in [key for key in self._held if self._held[key].is_final][: max(0, len(self._held) - _MOST_HELD)]:
            self._release(key)

    def _keys_of(self, capture_id: str) -> list[CaptureKey]:
        return [key for key in self._held if key[0] == capture_id]

    # ------------------------------------------------------------ what the processes say

    def on_process_event(self, event: ProcessEvent) -> None:
        """Tells the captures of a process what happened to it."""
        if isinstance(event, Gone):
            self._history.forget(event.process_id)
        for key in [key for key in self._held if key[1] == event.process_id]:
            capture = self._held[key]
            recorder, has_order = self._recorders.get(key), self._desk.holds(capture)
            for change in translate(event, key[0], recorder, self._clock(), has_order=has_order):
                self._held.apply(key, change)

    # ------------------------------------------------------------ what the directory and the clock say

    def _pause_s(self) -> float | None:
        if any(capture.awaits_file or capture.file_name for capture in self._held.values()):
            return _SCAN_S
        unfinished = any(not capture.is_final or capture.keeps_trace for capture in self._held.values())
        return _SLOW_SCAN_S if unfinished or self._leftovers.are_expected else None

    def look(self, now: int) -> None:
        """One look at the traces' files and at what has come due; `run` takes one each time that it may be needed."""
        for file in self._traces.scan():
            key = self._held.owner_of(file)
            if key is None:
                self._leftovers.clear_away(file, self._held.values(), now)
            elif file.finished:
                self._held.apply(key, FinalSeen(file.name, file.size_bytes, now))
            else:
                self._held.apply(key, TmpSeen(file.size_bytes, now))
        for key in self._held:
            if not self._held[key].is_final or self._held[key].keeps_trace:
                self._tick(key, now)
        self._leftovers.forget(now)

    def _tick(self, key: CaptureKey, now: int) -> None:
        view = self._processes.get(key[1])
        if key in self._unplaced and self._held[key].state == RankState.ASKED:
            self._place_again(key, view, now)
        capture = self._held[key]
        if view is None and capture.awaits_file and now - self._begun_unix_ns > _RETURN_PATIENCE_NS:
            # It ended while we were away; nobody else will say so.
            self._held.apply(key, Gone(key[1], now, orderly_end=False))
        step = view.step if view is not None else None
        running = capture.state == RankState.STARTED and capture.awaits_file
        if step is not None and running and (message := self._slowdown.judge(key, capture.terms, step)):
            self._held.apply(key, Cancel(Reason.SLOWDOWN, message, now))
        hint = self._work.problem_of(key)
        if capture.armed_unix_ns and capture.awaits_file:
            hint = self._traces.find_stray(capture.terms.pid, capture.armed_unix_ns)
        self._held.apply(key, make_tick(view, hint, now))

    def _place_again(self, key: CaptureKey, view: ProcessView | None, now: int) -> None:
        """Places an order from before a restart, once its process and, where steps count, its agent are back."""
        terms = self._held[key].terms
        back = view is not None and view.polls_kineto and (terms.first_step is None or view.step is not None)
        in_time = now < (terms.deliver_until_unix_ns or terms.give_up_unix_ns)
        if back and in_time:
            self._place(key)
        elif not in_time:
            self._unplaced.discard(key)
            message = "the sidecar was restarted, and the start had passed before the process asked for its order"
            self._held.apply(key, OrderRejected(Reason.SIDECAR_RESTARTED, message, now))

    def _cancel(self, key: CaptureKey, reason: Reason, message: str) -> None:
        if problem := self._work.problem_of(key):
            # The trace is there: what ran out of time is the upload.
            reason = Reason.UPLOAD_FAILED if reason is Reason.DEADLINE_EXCEEDED else reason
            message = f"{message}; {problem}"
        self._held.apply(key, Cancel(reason, message, self._clock()))
