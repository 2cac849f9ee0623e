"""Runs the captures of this sidecar: feeds what happens into each one's machine and does what the machine says.

Guarantees: every change that matters is in the journal before the hub hears of it, so a kill at any moment loses no
finished trace: after a restart the journal and the traces directory are read again and everything goes on. Repeated
commands change nothing. Everything here runs in one event loop and never waits in it for a disk longer than a small
synced write; polls are answered elsewhere.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Protocol

import msgspec
from fleetprof_api import hub_pb2
from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar import capture as happened
from fleetprof_sidecar import process_views as seen
from fleetprof_sidecar.capture import Capture, Effect
from fleetprof_sidecar.capture_machine import advance, begin, resume
from fleetprof_sidecar.compression import Compression
from fleetprof_sidecar.delivery import Delivery, GaveUp, Put
from fleetprof_sidecar.device import DeviceReading
from fleetprof_sidecar.hub_messages import make_event
from fleetprof_sidecar.orders import agent_command, build_order, read_terms, window_ns
from fleetprof_sidecar.output import ORPHAN_AGE_NS, TraceFile, TracesDirectory
from fleetprof_sidecar.samples import RankRecorder, after_window_ns
from fleetprof_sidecar.sampling import Sampling
from fleetprof_sidecar.slowdown import SlowdownWatch
from fleetprof_sidecar.spool import NoRoom, Spool

_SCAN_S: Final = 0.1
_SLOW_SCAN_S: Final = 1.0
# Files of captures that are over are looked for this long: the window ends, Kineto writes, then there is no more.
_AFTERMATH_NS: Final = 300_000_000_000
_STALE_TMP_NS: Final = 60_000_000_000
# After a restart every living process polls within this time.
_RETURN_PATIENCE_NS: Final = 20_000_000_000
# The last datagrams of an agent's after-window.
_SAMPLES_MARGIN_NS: Final = 1_000_000_000
_MOST_HELD: Final = 2000

Key = tuple[str, str]
log = logging.getLogger(__name__)


class Processes(Protocol):
    """The part of `ProcessTable` that captures need."""

    def snapshot(self) -> list[seen.ProcessView]:
        """All processes."""

    def get(self, process_id: str) -> seen.ProcessView | None:
        """One process, None when it is not here."""

    def place_order(
        self,
        process_id: str,
        config: str,
        deliver_until_unix_ns: int,
        first_step: int | None,
        *,
        chosen: bool = False,
    ) -> None:
        """Has the config delivered. Raises OrderRefused."""

    def withdraw_order(self, process_id: str) -> bool:
        """Takes an undelivered order back."""

    def send_to_agent(self, process_id: str, kind: str, **fields: Any) -> bool:
        """Sends one message; False when it did not leave."""


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
        self._sampling = sampling
        self._send = send
        self._put = put
        self._host_name = host_name
        self._clock = clock
        self._compression = Compression(spool)
        self._held: dict[Key, Capture] = {}
        self._recorders: dict[Key, RankRecorder] = {}
        self._watches: dict[Key, SlowdownWatch] = {}
        self._deliveries: dict[tuple[Key, int], Delivery] = {}
        self._tasks: dict[Key, set[asyncio.Task[None]]] = {}
        self._aftermath: dict[str, int] = {}  # stems whose files are to be deleted, until when
        self._begun_unix_ns = clock()
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._draining = False

    # ------------------------------------------------------------ what the sidecar's other parts ask

    def restore(self) -> None:
        """Takes up what the journal holds. To be called once, in the event loop, before anything else."""
        for capture in self._spool.recorded():
            key = _key(capture)
            self._held[key] = capture
            resumed, effects = resume(capture)
            self._store(key, resumed)
            self._perform(key, effects)
            if resumed.state == RankState.ASKED:
                self._place(key, resumed)
        self._spool.drop_orphans(list(self._held.values()))
        if self._held:
            log.info("the journal holds %d captures", len(self._held))

    def held_events(self) -> list[hub_pb2.CaptureEvent]:
        """The latest event of every capture, for Hello."""
        return [make_event(capture) for capture in self._held.values()]

    def ask_again(self) -> None:
        """The connection to the hub is new: questions that were asked before were lost."""
        for delivery in self._deliveries.values():
            delivery.receive(None)

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

    async def drain(self, patience_s: float) -> None:
        """Accepts no more orders, takes back the undelivered ones, and waits for finished traces to be stored."""
        self._draining = True
        for capture in self._held.values():
            if capture.state == RankState.ASKED:
                self._processes.withdraw_order(capture.terms.process_id)
        try:
            async with asyncio.timeout(patience_s):
                while any(not c.is_final and (c.file_name or c.trace) for c in self._held.values()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            log.warning("stopped before every trace was stored; the spool keeps them for the next start")

    async def close(self) -> None:
        """Ends all work in progress."""
        tasks = [task for group in self._tasks.values() for task in group]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------ what the hub says

    def receive(self, message: hub_pb2.HubMessage) -> None:
        """One message of the hub; what it must not say raises ValueError and changes nothing."""
        match message.WhichOneof("body"):
            case "arm":
                for order in message.arm.orders:
                    self._arm(message.arm, order)
            case "cancel":
                cancel = message.cancel
                reason = Reason(cancel.reason) if cancel.reason in set(Reason) else Reason.CANCELLED
                for key in self._keys_of(cancel.capture_id):
                    self._apply(key, happened.Cancel(reason, cancel.message or "cancelled", self._clock()))
            case "upload_grant":
                grant = message.upload_grant
                self._answer((grant.capture_id, grant.process_id), grant.object, grant)
            case "upload_verdict":
                verdict = message.upload_verdict
                self._answer((verdict.capture_id, verdict.process_id), verdict.object, verdict)
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
        view = self._processes.get(order.process_id)
        terms = read_terms(arm, order, view)
        now = self._clock()
        occupant = self._occupant(order.process_id, now)
        self._make_room()
        capture = begin(terms, now)
        self._store(key, capture)
        self._report(capture)
        if view is None:
            self._apply(key, happened.Refused(Reason.NOT_POLLING, "no such process is here: it ended", now))
        elif occupant:
            message = f"capture {occupant} has not ended in this process; ask again when it has"
            self._apply(key, happened.Refused(Reason.BUSY, message, now))
        else:
            self._place(key, capture)

    def _place(self, key: Key, capture: Capture) -> None:
        terms, now = capture.terms, self._clock()
        view = self._processes.get(terms.process_id)
        self._recorders[key] = RankRecorder()
        self._sampling.begin(key, terms.sample_interval_ns)
        try:
            config, deliver_until = build_order(terms, self._traces.path, view.device_kind if view is not None else "")
        except ValueError as problem:
            self._apply(key, happened.Refused(Reason.INTERNAL, str(problem), now))
            return
        if terms.has_agent:
            # First, so that the exit guard watches before Kineto can begin.
            self._processes.send_to_agent(terms.process_id, "arm", **agent_command(terms))
        try:
            self._processes.place_order(terms.process_id, config, deliver_until, terms.first_step, chosen=True)
        except seen.OrderRefused as refused:
            reason = Reason.BUSY if refused.reason == "Outstanding" else Reason.NOT_POLLING
            self._apply(key, happened.Refused(reason, refused.message, now))

    def _occupant(self, process_id: str, now: int) -> str:
        """The capture that holds Kineto's only slot in this process, "" when it is free.

        A second config would be dropped without a word, so a cancelled window that could not be stopped counts too.
        """
        for capture in self._held.values():
            terms = capture.terms
            if terms.process_id != process_id:
                continue
            if capture.awaits_file:
                return terms.capture_id
            if capture.state == RankState.FAILED and capture.armed_unix_ns and not capture.written_unix_ns:
                window_end = (terms.start_unix_ns or 0) + window_ns(terms) + 2_000_000_000
                if terms.start_unix_ns and now < window_end:
                    return terms.capture_id
        return ""

    def _answer(self, key: Key, kind: int, message: hub_pb2.UploadGrant | hub_pb2.UploadVerdict) -> None:
        delivery = self._deliveries.get((key, kind))
        if delivery is not None:
            delivery.receive(message)

    def _release(self, key: Key) -> None:
        capture = self._held[key]
        if not capture.is_final:
            self._apply(key, happened.Cancel(Reason.CANCELLED, "the hub ended this capture", self._clock()))
        self._end_work(key)
        capture = self._held.pop(key)
        if capture.armed_unix_ns:
            self._aftermath[capture.terms.trace_id] = self._clock() + _AFTERMATH_NS
        self._drop_finished_files(capture)
        self._spool.forget(capture)
        self._wake.set()

    def _make_room(self) -> None:
        """Forgets the oldest captures that are over, should the hub never release any."""
        over = [key for key, capture in self._held.items() if capture.is_final]
        for key in over[: max(0, len(self._held) - _MOST_HELD)]:
            self._release(key)

    # ------------------------------------------------------------ what the processes say

    def on_process_event(self, event: seen.ProcessEvent) -> None:
        """One event of the process table."""
        for key in [key for key in self._held if key[1] == event.process_id]:
            for what in self._translate(key, event):
                self._apply(key, what)

    def on_devices(self, readings: Iterable[DeviceReading]) -> None:
        """Device samples taken here: for the ranks that have no agent."""
        by_device = {reading.device: reading for reading in readings}
        for key, recorder in self._recorders.items():
            view = self._processes.get(key[1])
            if view is None or view.has_agent or view.local_rank is None or view.local_rank not in by_device:
                continue
            reading = by_device[view.local_rank]
            columns: dict[str, list[int | None]] = {name: [value] for name, value in reading.values.items()}
            recorder.add_device({**columns, "at_unix_ns": [reading.at_unix_ns]})

    def _translate(self, key: Key, event: seen.ProcessEvent) -> list[happened.Event]:
        match event:
            case seen.Delivered(_, at):
                return [happened.Delivered(at)]
            case seen.Expired(process_id, why, at):
                view = self._processes.get(process_id)
                polling = view is not None and view.last_poll_unix_ns > self._held[key].asked_unix_ns
                return [happened.Expired(why, polling or why in ("busy", "step", "role"), at)]
            case seen.BusyChanged(process_id, busy, at):
                return [happened.BusyChanged(busy, self._step_of(process_id), at)]
            case seen.Gone(_, at, farewell):
                return [happened.Gone(farewell, at)]
            case seen.AgentMessage(_, fields):
                return self._hear_agent(key, fields)
        return []

    def _hear_agent(self, key: Key, fields: dict[str, Any]) -> list[happened.Event]:
        kind, mine = fields["t"], fields.get("capture") == key[0]
        recorder = self._recorders.get(key)
        if kind == "bye":
            return [happened.Gone(True, self._clock())]
        if kind == "cancelled" and mine:
            return [happened.AgentCancelled(self._clock())]
        if recorder is not None and kind == "times" and mine:
            recorder.add_steps(fields["step"], fields["end_unix_ns"])
        if recorder is not None and kind == "device":
            recorder.add_device(fields)
        return []

    def _step_of(self, process_id: str) -> int | None:
        view = self._processes.get(process_id)
        return view.step.step if view is not None and view.step is not None else None

    # ------------------------------------------------------------ what the directory and the clock say

    def _pause_s(self) -> float | None:
        if any(capture.awaits_file or capture.file_name for capture in self._held.values()):
            return _SCAN_S
        unfinished = any(not capture.is_final for capture in self._held.values())
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
            if not self._held[key].is_final:
                self._tick(key, now)
        for stem in [stem for stem, until in self._aftermath.items() if until < now]:
            del self._aftermath[stem]

    def _owner_of(self, file: TraceFile) -> Key | None:
        """The capture that waits for this file: never one of another request, as the name begins with its id."""
        for key, capture in self._held.items():
            if capture.terms.trace_id == file.stem and (capture.awaits_file or capture.file_name == file.name):
                return key
        return None

    def _clear_away(self, file: TraceFile, now: int) -> None:
        known = file.stem in self._aftermath or any(c.terms.trace_id == file.stem for c in self._held.values())
        age = now - file.modified_unix_ns
        if (known and (file.finished or age > _STALE_TMP_NS)) or (not known and age > ORPHAN_AGE_NS):
            self._traces.delete(file.name)

    def _tick(self, key: Key, now: int) -> None:
        capture = self._held[key]
        view = self._processes.get(key[1])
        if view is None and capture.awaits_file and now - self._begun_unix_ns > _RETURN_PATIENCE_NS:
            # It ended while we were away; nobody else will say so.
            self._apply(key, happened.Gone(False, now))
        step = view.step if view is not None else None
        if step is not None and capture.state == RankState.STARTED and capture.awaits_file:
            self._check_slowdown(key, step, now)
        hint = ""
        if capture.armed_unix_ns and capture.awaits_file:
            hint = self._traces.find_stray(capture.terms.pid, capture.armed_unix_ns)
        elif capture.state == RankState.WRITTEN:
            delivery = self._deliveries.get((key, hub_pb2.TRACE))
            hint = delivery.last_problem if delivery is not None else ""
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

    def _check_slowdown(self, key: Key, step: seen.StepView, now: int) -> None:
        terms = self._held[key].terms
        if not terms.max_slowdown_percent or not terms.has_agent or terms.first_step is None:
            return
        if key not in self._watches:
            self._watches[key] = SlowdownWatch(
                terms.iteration_ns, terms.first_step, terms.steps_per_iteration, terms.max_slowdown_percent
            )
        percent = self._watches[key].observe(step.step, step.at_unix_ns)
        if percent is not None:
            limit = terms.max_slowdown_percent
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
            process_id = capture.terms.process_id
            match effect:
                case Effect.REPORT:
                    self._report(capture)
                case Effect.WITHDRAW_ORDER:
                    self._processes.withdraw_order(process_id)
                case Effect.CANCEL_IN_PROCESS:
                    self._processes.send_to_agent(process_id, "cancel", capture=key[0])
                case Effect.TELL_AGENT_DONE:
                    after = 0 if capture.is_final else after_window_ns(capture.terms.iteration_ns)
                    self._processes.send_to_agent(process_id, "done", capture=key[0], after_ns=after)
                case Effect.COMPRESS:
                    self._start(key, self._compress(key, capture))
                case Effect.GATHER_SAMPLES:
                    self._start(key, self._gather_samples(key, capture))
                case Effect.UPLOAD_TRACE:
                    self._start(key, self._deliver(key, hub_pb2.TRACE))
                case Effect.UPLOAD_SAMPLES:
                    self._start(key, self._deliver(key, hub_pb2.SAMPLES))
                case Effect.STOP_WORK:
                    self._end_work(key)
                case Effect.DISCARD:
                    self._sampling.end(key)
                    self._recorders.pop(key, None)
                    self._spool.drop_files(capture)
                    self._drop_finished_files(capture)
                    if capture.armed_unix_ns and capture.state == RankState.FAILED:
                        self._aftermath[capture.terms.trace_id] = self._clock() + _AFTERMATH_NS

    def _report(self, capture: Capture) -> None:
        self._send(hub_pb2.SidecarMessage(event=make_event(capture)))

    def _drop_finished_files(self, capture: Capture) -> None:
        for file in self._traces.scan():
            if file.finished and file.stem == capture.terms.trace_id and self._owner_of(file) is None:
                self._traces.delete(file.name)

    def _start(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        group = self._tasks.setdefault(key, set())
        group.add(task)
        task.add_done_callback(lambda ended: self._finish_task(key, ended))

    def _finish_task(self, key: Key, task: asyncio.Task[None]) -> None:
        group = self._tasks.get(key, set())
        group.discard(task)
        if not group:
            self._tasks.pop(key, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("capture work failed", exc_info=task.exception(), extra={"capture": key[0], "process_id": key[1]})
            self._apply(key, happened.Cancel(Reason.INTERNAL, f"the sidecar failed: {task.exception()}", self._clock()))

    def _end_work(self, key: Key) -> None:
        for task in list(self._tasks.get(key, ())):
            if task is not asyncio.current_task():
                task.cancel()
        self._sampling.end(key)
        self._recorders.pop(key, None)
        self._watches.pop(key, None)

    async def _compress(self, key: Key, capture: Capture) -> None:
        result = await self._compression.compress(capture, self._traces.path / capture.file_name, self._clock())
        self._apply(key, result)
        # Only now: the journal knows the compressed copy.
        if not self._traces.delete(capture.file_name):
            _tell(
                capture, f"{capture.file_name} cannot be deleted: no permission in the traces directory", logging.ERROR
            )

    async def _gather_samples(self, key: Key, capture: Capture) -> None:
        after = after_window_ns(capture.terms.iteration_ns) if capture.terms.has_agent else 0
        until = capture.written_unix_ns + after + _SAMPLES_MARGIN_NS
        await asyncio.sleep(max(0, until - self._clock()) / 1e9)
        recorder = self._recorders.pop(key, None) or RankRecorder()
        self._sampling.end(key)
        host = self._sampling.host_columns(capture.asked_unix_ns, until)
        document = recorder.document(capture, self._processes.get(key[1]), self._host_name, host)
        try:
            event = happened.SamplesReady(self._spool.write_samples(capture, document), "", self._clock())
        except (NoRoom, OSError) as problem:
            event = happened.SamplesReady(None, str(problem), self._clock())
        self._apply(key, event)

    async def _deliver(self, key: Key, kind: hub_pb2.ObjectKind.ValueType) -> None:
        capture = self._held[key]
        samples = kind == hub_pb2.SAMPLES
        stored = capture.samples if samples else capture.trace
        assert stored is not None
        delivery = Delivery(capture.terms, kind, stored, self._send, self._put)
        self._deliveries[key, kind] = delivery
        try:
            await delivery.run()
            now = self._clock()
            event: happened.Event = happened.SamplesStored(now) if samples else happened.TraceStored(now)
        except GaveUp as reason:
            event = happened.UploadEnded(str(reason), samples, self._clock())
        finally:
            del self._deliveries[key, kind]
        self._apply(key, event)

    def _keys_of(self, capture_id: str) -> list[Key]:
        return [key for key in self._held if key[0] == capture_id]


def _key(capture: Capture) -> Key:
    return capture.terms.capture_id, capture.terms.process_id


def _lasting(capture: Capture) -> Capture:
    """Without what a restart finds out again by itself: not worth a synced write."""
    return msgspec.structs.replace(capture, tmp_bytes=None, last_sign_unix_ns=0, due_unix_ns=0)


def _tell(capture: Capture, message: str, level: int = logging.INFO) -> None:
    log.log(level, message, extra={"capture": capture.terms.capture_id, "process_id": capture.terms.process_id})
