"""Runs the captures of this sidecar: feeds what happens into each one's machine and does what the machine says.

Guarantees: every change that matters is in the journal before the hub hears of it, so a kill at any moment loses no
finished trace: after a restart the journal and the traces directory are read again and everything goes on. Repeated
commands change nothing. Everything here runs in one event loop and never waits in it for a disk longer than a small
synced write; polls are answered elsewhere.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from fleetprof_api import hub_pb2
from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar import capture as happened
from fleetprof_sidecar import process_views as seen
from fleetprof_sidecar.capture import Capture, Effect
from fleetprof_sidecar.capture_machine import advance, begin, resume
from fleetprof_sidecar.capture_work import CaptureWork, Key
from fleetprof_sidecar.delivery import Put
from fleetprof_sidecar.hub_messages import make_event, make_refusal
from fleetprof_sidecar.order_desk import OrderDesk, Processes, find_occupant
from fleetprof_sidecar.orders import read_terms
from fleetprof_sidecar.output import ORPHAN_AGE_NS, TraceFile, TracesDirectory
from fleetprof_sidecar.samples import after_window_ns
from fleetprof_sidecar.sampling import Sampling
from fleetprof_sidecar.slowdown import SlowdownWatch
from fleetprof_sidecar.spool import Spool

_SCAN_S: Final = 0.1
_SLOW_SCAN_S: Final = 1.0
# Files of captures that are over are looked for this long: the window ends, Kineto writes, then there is no more.
_AFTERMATH_NS: Final = 300_000_000_000
# After a restart every living process polls within this time.
_RETURN_PATIENCE_NS: Final = 20_000_000_000
# A process's end is noticed within a second (housekeeping.py), and then handed on.
_NOTICE_S: Final = 1.5
_MOST_HELD: Final = 2000

log = logging.getLogger(__name__)


class Captures:
    """All captures that were not released. `send` queues a message to the hub, `put` uploads parts (delivery.Put)."""

    def __init__(
        self,
        *,
        processes: Processes,
        traces: TracesDirectory,
        spool: Spool,
        sampling: Sampling,
        send: Callable[[hub_pb2.SidecarMessage], None],
        put: Put,
        host_name: str = "",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._processes = processes
        self._traces = traces
        self._spool = spool
        self._send = send
        self._clock = clock
        self._desk = OrderDesk(processes, traces.path)
        self.work = CaptureWork(
            processes=processes,
            traces=traces,
            spool=spool,
            sampling=sampling,
            send=send,
            put=put,
            host_name=host_name,
            clock=clock,
            apply=self._apply,
        )
        self._held: dict[Key, Capture] = {}
        self._unplaced: set[Key] = set()  # asked before a restart, and the process has not shown itself since
        self._watches: dict[Key, SlowdownWatch] = {}
        self._aftermath: dict[str, tuple[str, int]] = {}  # trace ids whose files are to go: the process, until when
        self._begun_unix_ns = clock()
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._draining = False

    # ------------------------------------------------------------ what the sidecar's other parts ask

    def restore(self) -> None:
        """Takes up what the journal holds. To be called once, in the event loop, before anything else."""
        for capture in self._spool.recorded():
            key = (capture.terms.capture_id, capture.terms.process_id)
            resumed, effects = resume(capture)
            self._store(key, resumed)
            if resumed.awaits_file:
                self._desk.take_up(resumed)
                self.work.begin_samples(key, resumed)
            if resumed.state == RankState.ASKED:
                self._unplaced.add(key)
            self._perform(key, effects)
        self._spool.drop_orphans(list(self._held.values()))
        if self._held:
            log.info("the journal holds %d captures", len(self._held))

    def held_events(self) -> list[hub_pb2.CaptureEvent]:
        """The latest event of every capture, for Hello."""
        return [make_event(capture) for capture in self._held.values()]

    async def run(self) -> None:
        """Watches the traces directory and the clock until cancelled; rests while nothing is outstanding."""
        while True:
            self._look(self._clock())
            self._wake.clear()
            try:
                async with asyncio.timeout(self._pause_s()):
                    await self._wake.wait()
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
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            kept = "they are lost with the pod" if ends_with_pod else "the spool keeps them for the next start"
            log.warning("stopped before every trace was stored; %s", kept)
        if ends_with_pod:
            for key in list(self._held):
                self._apply(key, happened.PodEnded(self._clock()))

    def _ends_with_us(self, capture: Capture) -> bool:
        if capture.is_final:
            return False
        gone = capture.farewell is not None or self._processes.get(capture.terms.process_id) is None
        return gone or bool(capture.file_name or capture.trace)

    # ------------------------------------------------------------ what the hub says

    def receive(self, message: hub_pb2.HubMessage) -> None:
        """One message of the hub."""
        match message.WhichOneof("body"):
            case "arm":
                for order in message.arm.orders:
                    self._arm(message.arm, order)
            case "cancel":
                cancel = message.cancel
                reason = Reason(cancel.reason) if cancel.reason in set(Reason) else Reason.CANCELLED
                for key in self._keys_of(cancel.capture_id):
                    self._cancel(key, reason, cancel.message or "cancelled")
            case "upload_grant":
                grant = message.upload_grant
                self.work.answer((grant.capture_id, grant.process_id), grant.object, grant)
            case "upload_verdict":
                verdict = message.upload_verdict
                self.work.answer((verdict.capture_id, verdict.process_id), verdict.object, verdict)
            case "fetch_traces":
                for process_id in message.fetch_traces.process_ids:
                    self._apply((message.fetch_traces.capture_id, process_id), happened.TraceWanted(self._clock()))
            case "release":
                for key in self._keys_of(message.release.capture_id):
                    self._release(key)

    def _arm(self, arm: hub_pb2.Arm, order: hub_pb2.Order) -> None:
        key = (arm.capture_id, order.process_id)
        if key in self._held:
            self._report(self._held[key])
            return
        if self._draining:
            return
        now = self._clock()
        try:
            terms = read_terms(arm, order, self._processes.get(order.process_id))
        except ValueError as problem:
            log.warning("the hub sent an order that makes no sense: %s", problem)
            self._send(make_refusal(arm, order, Reason.INTERNAL, str(problem), now))
            return
        occupant = find_occupant(self._held.values(), order.process_id, now)
        self._make_room()
        capture = begin(terms, now)
        self._store(key, capture)
        _tell(capture, "asked")
        self._report(capture)
        if occupant:
            message = f"capture {occupant} has not ended in this process; ask again when it has"
            self._apply(key, happened.Refused(Reason.BUSY, message, now))
        else:
            self._place(key)

    def _place(self, key: Key) -> None:
        self._unplaced.discard(key)
        self.work.begin_samples(key, self._held[key])
        refused = self._desk.place(self._held[key], self._clock())
        if refused is not None:
            self._apply(key, refused)

    def _release(self, key: Key) -> None:
        if not self._held[key].is_final:
            self._apply(key, happened.Cancel(Reason.CANCELLED, "the hub ended this capture", self._clock()))
        self.work.stop(key)
        self._watches.pop(key, None)
        capture = self._held.pop(key)
        if capture.armed_unix_ns:
            self._expect_leftovers(capture)
        self._drop_finished_files(capture)
        self._spool.forget(capture)
        self._changed.set()
        self._wake.set()

    def _make_room(self) -> None:
        """Forgets the oldest captures that are over, should the hub never release any."""
        over = [key for key, capture in self._held.items() if capture.is_final]
        for key in over[: max(0, len(self._held) - _MOST_HELD)]:
            self._release(key)

    def _keys_of(self, capture_id: str) -> list[Key]:
        return [key for key in self._held if key[0] == capture_id]

    # ------------------------------------------------------------ what the processes say

    def on_process_event(self, event: seen.ProcessEvent) -> None:
        """One event of the process table."""
        for key in [key for key in self._held if key[1] == event.process_id]:
            for what in self._translate(key, event):
                self._apply(key, what)

    def _translate(self, key: Key, event: seen.ProcessEvent) -> list[happened.Event]:
        view = self._processes.get(event.process_id)
        match event:
            case seen.Delivered(_, at) if self._desk.holds(self._held[key]):
                return [happened.Delivered(at)]
            case seen.Expired(_, why, at) if self._desk.holds(self._held[key]):
                polled = view is not None and view.last_poll_unix_ns > self._held[key].asked_unix_ns
                return [happened.Expired(why, polled or why != "time", at)]
            case seen.BusyChanged(_, busy, at):
                step = view.step.step if view is not None and view.step is not None else None
                return [happened.BusyChanged(busy, step, at)]
            case seen.Gone(_, at, farewell):
                return [happened.Gone(farewell, at)]
            case seen.AgentMessage(_, fields):
                return self._hear_agent(key, fields)
        return []

    def _hear_agent(self, key: Key, fields: dict[str, Any]) -> list[happened.Event]:
        kind, mine = fields["t"], fields.get("capture") == key[0]
        recorder = self.work.recorder(key)
        if kind == "bye":
            return [happened.Gone(True, self._clock())]
        if kind == "cancelled" and mine:
            return [happened.AgentCancelled(self._clock())]
        if recorder is not None and kind == "times" and mine:
            recorder.add_steps(fields["step"], fields["end_unix_ns"])
        if recorder is not None and kind == "device":
            recorder.add_device(fields)
        return []

    # ------------------------------------------------------------ what the directory and the clock say

    def _pause_s(self) -> float | None:
        if any(capture.awaits_file or capture.file_name for capture in self._held.values()):
            return _SCAN_S
        unfinished = any(not capture.is_final or capture.keeps_trace for capture in self._held.values())
        return _SLOW_SCAN_S if unfinished or self._aftermath else None

    def _look(self, now: int) -> None:
        for file in self._traces.scan():
            key = self._owner_of(file)
            if key is None:
                self._clear_away(file, now)
            elif file.finished:
                self._apply(key, happened.FinalSeen(file.name, file.size_bytes, now))
            else:
                self._apply(key, happened.TmpSeen(file.size_bytes, now))
        for key in list(self._held):
            if not self._held[key].is_final or self._held[key].keeps_trace:
                self._tick(key, now)
        for trace_id in [trace_id for trace_id, (_, until) in self._aftermath.items() if until < now]:
            del self._aftermath[trace_id]

    def _owner_of(self, file: TraceFile) -> Key | None:
        """The capture that waits for this file: never one of another request, as the name begins with its id."""
        for key, capture in self._held.items():
            if capture.terms.trace_id == file.stem and (capture.awaits_file or capture.file_name == file.name):
                return key
        return None

    def _clear_away(self, file: TraceFile, now: int) -> None:
        processes = [c.terms.process_id for c in self._held.values() if c.terms.trace_id == file.stem]
        if file.stem in self._aftermath:
            processes.append(self._aftermath[file.stem][0])
        over = bool(processes) and (file.finished or all(self._is_at_rest(p, file) for p in processes))
        if over or now - file.modified_unix_ns > ORPHAN_AGE_NS:
            self._traces.delete(file.name)

    def _is_at_rest(self, process_id: str, file: TraceFile) -> bool:
        """Tells whether Kineto will not write this file any more: the process is gone, or idle since it began it."""
        view = self._processes.get(process_id)
        if view is None:
            return True
        return not view.busy and view.last_poll_unix_ns > file.modified_unix_ns + view.poll_interval_ns

    def _expect_leftovers(self, capture: Capture) -> None:
        self._aftermath[capture.terms.trace_id] = (capture.terms.process_id, self._clock() + _AFTERMATH_NS)

    def _drop_finished_files(self, capture: Capture) -> None:
        for file in self._traces.scan():
            if file.finished and file.stem == capture.terms.trace_id and self._owner_of(file) is None:
                self._traces.delete(file.name)

    def _tick(self, key: Key, now: int) -> None:
        view = self._processes.get(key[1])
        if key in self._unplaced:
            self._place_again(key, view, now)
        capture = self._held[key]
        if view is None and capture.awaits_file and now - self._begun_unix_ns > _RETURN_PATIENCE_NS:
            # It ended while we were away; nobody else will say so.
            self._apply(key, happened.Gone(False, now))
        step = view.step if view is not None else None
        if step is not None and capture.state == RankState.STARTED and capture.awaits_file:
            self._check_slowdown(key, step, now)
        hint = self.work.problem_of(key)
        if capture.armed_unix_ns and capture.awaits_file:
            hint = self._traces.find_stray(capture.terms.pid, capture.armed_unix_ns)
        self._apply(
            key,
            happened.Tick(
                at_unix_ns=now,
                step=step.step if step is not None else None,
                busy=view.busy if view is not None else None,
                last_poll_unix_ns=view.last_poll_unix_ns if view is not None else 0,
                hint=hint,
            ),
        )

    def _place_again(self, key: Key, view: seen.ProcessView | None, now: int) -> None:
        """Places an order from before a restart, once its process and, where steps count, its agent are back."""
        terms = self._held[key].terms
        back = view is not None and view.polls_kineto and (terms.first_step is None or view.step is not None)
        in_time = now < (terms.deliver_until_unix_ns or terms.give_up_unix_ns)
        if back and in_time:
            self._place(key)
        elif not in_time:
            self._unplaced.discard(key)
            message = "the sidecar was restarted, and the start had passed before the process asked for its order"
            self._apply(key, happened.Refused(Reason.SIDECAR_RESTARTED, message, now))

    def _check_slowdown(self, key: Key, step: seen.StepView, now: int) -> None:
        terms = self._held[key].terms
        limit = terms.max_slowdown_percent
        if not limit or not terms.has_agent or terms.first_step is None:
            return
        if key not in self._watches:
            self._watches[key] = SlowdownWatch(terms.iteration_ns, terms.first_step, terms.steps_per_iteration, limit)
        percent = self._watches[key].observe(step.step, step.at_unix_ns)
        if percent is not None:
            message = f"iterations were {percent} % slower than before, limits.maxSlowdownPercent allows {limit}"
            self._apply(key, happened.Cancel(Reason.SLOWDOWN, message, now))

    # ------------------------------------------------------------ the machine and its effects

    def _apply(self, key: Key, event: happened.Event) -> None:
        try:
            self._proceed(key, event)
        except Exception as problem:
            # Our own fault in one capture must not end the others.
            log.exception("%s could not be handled", event, extra={"capture": key[0], "process_id": key[1]})
            if not isinstance(event, happened.Cancel):
                message = f"the sidecar failed at {type(event).__name__}: {problem}"
                self._apply(key, happened.Cancel(Reason.INTERNAL, message, self._clock()))

    def _proceed(self, key: Key, event: happened.Event) -> None:
        before = self._held.get(key)
        if before is None:
            return
        after, effects = advance(before, event)
        if after is not before:
            self._store(key, after)
        if after.state != before.state:
            _tell(after, f"{before.state.lower()} → {after.state.lower()} {after.reason or ''} {after.message}".strip())
        self._perform(key, effects)

    def _store(self, key: Key, capture: Capture) -> None:
        before = self._held.get(key)
        self._held[key] = capture
        self._wake.set()
        self._changed.set()
        if before is not None and _lasting(before) == _lasting(capture):
            return
        try:
            self._spool.record(capture)
        except OSError as problem:
            # The capture goes on; only a kill in this state would now lose it.
            _tell(capture, f"the journal cannot be written: {problem}", logging.ERROR)

    def _perform(self, key: Key, effects: list[Effect]) -> None:
        for effect in effects:
            capture = self._held[key]
            match effect:
                case Effect.REPORT:
                    self._report(capture)
                case Effect.WITHDRAW_ORDER:
                    self._desk.withdraw(capture)
                case Effect.CANCEL_IN_PROCESS:
                    self._desk.cancel_in_process(capture)
                case Effect.TELL_AGENT_DONE:
                    after_ns = 0 if capture.is_final else after_window_ns(capture.terms.iteration_ns)
                    self._desk.tell_done(capture, after_ns)
                case Effect.COMPRESS:
                    self.work.compress(key, capture)
                case Effect.GATHER_SAMPLES:
                    self.work.gather_samples(key, capture)
                case Effect.UPLOAD_TRACE:
                    self.work.deliver(key, capture, hub_pb2.TRACE)
                case Effect.UPLOAD_SAMPLES:
                    self.work.deliver(key, capture, hub_pb2.SAMPLES)
                case Effect.SUMMARISE:
                    self.work.summarise(key, capture)
                case Effect.UPLOAD_SUMMARY:
                    self.work.deliver(key, capture, hub_pb2.SUMMARY)
                case Effect.STOP_WORK:
                    self.work.stop(key)
                case Effect.DISCARD:
                    self.work.end_samples(key)
                    self._unplaced.discard(key)
                    self._spool.drop_files(capture)
                    self._drop_finished_files(capture)
                    if capture.armed_unix_ns and capture.state == RankState.FAILED:
                        self._expect_leftovers(capture)

    def _cancel(self, key: Key, reason: Reason, message: str) -> None:
        if problem := self.work.problem_of(key):
            # The trace is there: what ran out of time is the upload.
            reason = Reason.UPLOAD_FAILED if reason is Reason.DEADLINE_EXCEEDED else reason
            message = f"{message}; {problem}"
        self._apply(key, happened.Cancel(reason, message, self._clock()))

    def _report(self, capture: Capture) -> None:
        self._send(hub_pb2.SidecarMessage(event=make_event(capture)))


def _lasting(capture: Capture) -> Capture:
    """Without what a restart finds out again by itself: not worth a synced write."""
    return msgspec.structs.replace(capture, tmp_bytes=None, last_sign_unix_ns=0, due_unix_ns=0)


def _tell(capture: Capture, message: str, level: int = logging.INFO) -> None:
    log.log(level, message, extra={"capture": capture.terms.capture_id, "process_id": capture.terms.process_id})
