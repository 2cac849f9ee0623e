"""One request on its way: resolve → arm → follow → analyse → end. Level-based, so that it can begin anywhere.

Guarantees: what is to be done next follows from the ledger and the clock, never from where the code last was, so a
request that is read back from the store goes on; a deadline and a cancel are honoured in every state; every rank that
was named ends with a reason; sidecars are told to let go only when the store holds the ledger's end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from fleetprof_api import hub_pb2 as pb
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, LedgerEntry, RankState, Reason, is_final
from fleetprof_api.request import ProfileRequest
from fleetprof_api.store.base import StoreError

from fleetprof_operator.book import Book, decide_outcome, to_status
from fleetprof_operator.ledger_writer import LedgerWriter
from fleetprof_operator.orders import build_arm, build_cancel, build_release
from fleetprof_operator.plan import find_obstacle, make_plan
from fleetprof_operator.registry import Registry, SidecarRecord
from fleetprof_operator.resolution import RankTarget, Resolution, resolve
from fleetprof_operator.settings import SECOND_NS, HubSettings
from fleetprof_operator.store_calls import StoreCalls
from fleetprof_operator.upload_desk import UploadDesk

log = logging.getLogger(__name__)

Analyze = Callable[[str, str], Awaitable[None]]
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a capture needs of its hub."""

    calls: StoreCalls
    registry: Registry
    settings: HubSettings
    clock: Callable[[], int]
    analyze: Analyze | None
    find_holder: Callable[[Sequence[RankTarget]], str]  # which unfinished request holds one of these, as a sentence


class Capture:
    """One request. All methods are for the hub's event loop; `run` ends when the request has."""

    def __init__(
        self, request: ProfileRequest, request_json: str, ledger: Ledger, hub: Surroundings, *, restored: bool = False
    ) -> None:
        self.request = request
        self.ledger = ledger
        self.book = Book(ledger)
        self.finished = False
        self.saved = False  # the store holds the end: sidecars may let go
        self.version = 0
        self._request_json = request_json
        self._hub = hub
        self._restating = restored and not ledger.outcome
        self._adopts = restored and not ledger.entries
        self._restated: set[str] = set()  # sidecars that said hello since the restart
        self._held: set[tuple[str, str]] = set()  # (sidecar, process) that were restated
        self._stored: set[tuple[str, str]] = set()  # (sidecar, process) whose trace the store holds
        self._poked = asyncio.Event()
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._report_made = False
        self._began_unix_ns = hub.clock()
        if self._adopts and self._restating:
            self.book.wait_for("Restarted", "the hub was restarted and asks its sidecars", self._began_unix_ns)
        limits = request.spec.limits
        max_bytes = (limits.max_trace_bytes or 0) if limits else 0
        self.desk = UploadDesk(hub.calls, ledger, max_bytes, hub.settings)
        key = keys.ledger_key(ledger.namespace, ledger.uid)
        self._writer = LedgerWriter(hub.calls, key, self._encode, hub.settings)

    @property
    def deadline_unix_ns(self) -> int:
        """When the request ends at the latest, but for the analysis."""
        return self.ledger.submitted_unix_ns + self.request.spec.active_deadline_seconds * SECOND_NS

    # ------------------------------------------------------------ what others see

    def status(self) -> pb.CaptureStatus:
        """As it stands."""
        self.book.derive()
        location = ""
        if self._report_made:
            key = keys.report_key(self.ledger.namespace, self.ledger.uid)
            location = self._hub.calls.store.locate(key)
        return to_status(
            self.ledger,
            target=self.request.target_text(),
            request_json=self._request_json,
            finished=self.finished,
            report_location=location,
        )

    async def wait_for_news(self, seen_version: int) -> None:
        """Returns when the status is newer than that version."""
        while self.version == seen_version:
            await self._news.wait()

    def holds(self, target: RankTarget) -> bool:
        """Tells whether this request still captures that process."""
        entry = self.book.find(target.sidecar_id, target.process.process_id)
        return not self.finished and entry is not None and not is_final(entry)

    def remember_finished(self) -> None:
        """Makes this a record of a request that had ended before the hub began."""
        self.finished = self.saved = True
        self._report_made = any(c.type == "Analyzed" and c.status == "True" for c in self.ledger.conditions)

    # ------------------------------------------------------------ what others tell

    def cancel(self) -> None:
        """The user's cancel; again or after the end it does nothing."""
        if not self.ledger.outcome and not self.ledger.cancelled_unix_ns:
            self.ledger.cancelled_unix_ns = self._hub.clock()
            self._send_all(self._cancel_message())  # at once: before any refusal to upload
            self._changed()

    def hear(self, event: pb.CaptureEvent, record: SidecarRecord) -> None:
        """A sidecar's word about one of its processes."""
        now, sidecar_id = self._hub.clock(), record.sidecar_id
        if self.ledger.outcome:
            if self.saved:
                self._hub.registry.send(sidecar_id, build_release(self.ledger.uid))
            return
        entry = self.book.find(sidecar_id, event.process_id)
        if entry is None:
            if self._adopts:
                self.book.adopt(event, sidecar_id, record.identity, now)
                self._changed()
            return
        stored = (sidecar_id, event.process_id) in self._stored
        if event.state == pb.UPLOADED and not stored:
            self._start(self._verify(event, record))
        elif event.state == pb.FAILED and stored:
            self.book.mark_uploaded(entry, f"the trace is there, its samples are not: {event.message}", now)
            self._changed()
        elif self.book.apply(event, sidecar_id, now):
            self._changed()

    def welcome(self, record: SidecarRecord, held: Iterable[pb.CaptureEvent]) -> None:
        """A sidecar is back (or new) with all that it holds of this request."""
        sidecar_id = record.sidecar_id
        if self.ledger.outcome:
            if self.saved:
                self._hub.registry.send(sidecar_id, build_release(self.ledger.uid))
            return
        known = set()
        for event in held:
            known.add(event.process_id)
            self._held.add((sidecar_id, event.process_id))
            self.hear(event, record)
        self._restated.add(sidecar_id)
        missing = [e for e in self._open_of(sidecar_id) if e.process_id not in known]
        if missing and not self._restating:
            self._recover(sidecar_id, missing)
        if self._open_of(sidecar_id) and self.ledger.cancelled_unix_ns:
            self._hub.registry.send(sidecar_id, self._cancel_message())
        self._poked.set()

    async def grant(self, asked: pb.UploadRequest, record: SidecarRecord) -> None:
        """Answers a sidecar's wish to upload."""
        entry = self._entry_for_upload(record, asked.process_id)
        if isinstance(entry, str):
            answer = pb.UploadGrant(capture_id=asked.capture_id, process_id=asked.process_id, object=asked.object)
            answer.refusal = entry
        else:
            answer = await self.desk.grant(asked, record.sidecar_id, entry)
        self._hub.registry.send(record.sidecar_id, pb.HubMessage(upload_grant=answer))

    async def accept(self, done: pb.UploadDone, record: SidecarRecord) -> None:
        """Takes a finished upload."""
        entry = self._entry_for_upload(record, done.process_id)
        if isinstance(entry, str):
            answer = pb.UploadVerdict(capture_id=done.capture_id, process_id=done.process_id, object=done.object)
            answer.message = entry
        else:
            answer = await self.desk.complete(done, record.sidecar_id)
            if answer.accepted and done.object == pb.TRACE:
                self._stored.add((record.sidecar_id, done.process_id))
                self._poked.set()
        self._hub.registry.send(record.sidecar_id, pb.HubMessage(upload_verdict=answer))

    # ------------------------------------------------------------ the way

    async def run(self) -> None:
        """Brings the request to its end, whatever happens. Raises nothing but CancelledError."""
        writer = asyncio.create_task(self._writer.run())
        self._tasks.add(writer)
        try:
            try:
                await self._go()
            except Exception as error:
                log.exception("request %s ends by a fault of the hub", self.ledger.uid)
                self._end_by_fault(error)
            self._changed()
            self.saved = await self._writer.flush(self._hub.settings.store_patience_ns, unless_refused=True)
            self.finished = True
            self._changed()
            await self.desk.close()
            self.saved = await self._writer.flush(_NEVER)
            for sidecar_id in self.book.sidecar_ids():
                self._hub.registry.send(sidecar_id, build_release(self.ledger.uid))
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def flush(self, patience_ns: int) -> None:
        """Waits a while for the store to have the ledger."""
        await self._writer.flush(patience_ns)

    async def _go(self) -> None:
        self._changed()
        if self._restating:
            await self._await_restatement()
        if not self.ledger.entries and not await self._resolve():
            return
        await self._follow()
        await self._finish()

    async def _await_restatement(self) -> None:
        """After the hub's restart: lets sidecars say first what they hold; then what nobody holds is decided."""
        until = self._hub.clock() + self._hub.settings.restate_ns
        while self._hub.clock() < until:
            if not self._adopts and {e.sidecar_id for e in self.book.open_entries()} <= self._restated:
                break
            await self._wait(until)
        self._restating = self._adopts = False
        await self._find_stored()
        unheld = [e for e in self.book.open_entries() if e.sidecar_id in self._restated and not self._is_held(e)]
        untouched = all(e.state is RankState.ASKED or e.reason is Reason.NOT_POLLING for e in self.ledger.entries)
        late = self._hub.clock() >= self.ledger.deliver_until_unix_ns
        if unheld and untouched and late and not self._held and not self.ledger.cancelled_unix_ns:
            # The order never left the hub that died: nothing has happened, so it can be planned anew.
            self.book.withdraw_plan()
            return
        for sidecar_id in {e.sidecar_id for e in unheld}:
            self._recover(sidecar_id, [e for e in unheld if e.sidecar_id == sidecar_id])

    async def _find_stored(self) -> None:
        """Which traces an earlier hub had already accepted. A store that is away is asked until it answers."""
        while self.book.open_entries() and self._hub.clock() < self.deadline_unix_ns:
            try:
                prefix = keys.request_prefix(self.ledger.namespace, self.ledger.uid)
                there = {info.key for info in await self._hub.calls.list(f"{prefix}ranks/")}
            except StoreError:
                await asyncio.sleep(self._hub.settings.store_retry_ns / SECOND_NS)
                continue
            for entry in self.book.open_entries():
                if keys.trace_key(self.ledger.namespace, self.ledger.uid, entry.rank) in there:
                    self._stored.add((entry.sidecar_id, entry.process_id))
            return

    async def _resolve(self) -> bool:
        """Waits for the target and arms it. False when the request ended meanwhile."""
        hub, spec, namespace = self._hub, self.request.spec, self.ledger.namespace
        gather_until = 0
        while True:
            now = hub.clock()
            if self.ledger.cancelled_unix_ns:
                self.book.conclude("False", "Cancelled", "cancelled by the user before any rank was asked", now)
                return False
            found = resolve(spec, namespace, hub.registry.list(), now, self.request.target_text())
            if found.targets:
                if holder := hub.find_holder(found.targets):
                    self.book.conclude("False", "AlreadyCapturing", holder, now)
                    return False
                pending = self._find_pending(found, now)
                gather_until = gather_until or now + hub.settings.gather_ns
                if not pending or now >= min(gather_until, self.deadline_unix_ns):
                    self._arm(found, now)
                    return True
                said = ("Gathering", pending)
            else:
                gather_until = 0
                said = (found.reason, found.message)
                deaf = found.deaf_since_unix_ns and now - found.deaf_since_unix_ns >= hub.settings.deaf_patience_ns
                if deaf or now >= self.deadline_unix_ns:
                    waited = f" (until the deadline of {spec.active_deadline_seconds} s)" if not deaf else ""
                    self.book.conclude("False", found.reason, found.message + waited, now)
                    return False
            if self.book.wait_for(*said, now):
                self._changed()
            await self._wait(now + hub.settings.look_again_ns)

    def _find_pending(self, found: Resolution, now_unix_ns: int) -> str:
        """What a short wait may still improve; empty when nothing."""
        if found.incomplete:
            return found.incomplete
        processes = [t.process for t in found.targets if t.process.polls_kineto]
        if self.request.spec.window.iterations is None:
            return ""
        # An agent shows itself with the first optimizer step: a young process may still have one.
        young = any(now_unix_ns - p.first_seen_unix_ns < self._hub.settings.young_ns for p in processes)
        if not young and not any(p.has_agent for p in processes):
            return ""
        return find_obstacle(processes, self.request.spec.window, now_unix_ns)

    def _arm(self, found: Resolution, now_unix_ns: int) -> None:
        polling = [t.process for t in found.targets if t.process.polls_kineto]
        plan = make_plan(polling, self.request.spec.window, now_unix_ns)
        self.book.ask(found.targets, plan, found.incomplete, now_unix_ns, found.absent)
        for sidecar_id in self.book.sidecar_ids():
            self._send_order(sidecar_id, self._open_of(sidecar_id))
        self._changed()

    def _send_order(self, sidecar_id: str, entries: Sequence[LedgerEntry]) -> None:
        if entries:
            message = build_arm(self.ledger, self.request.spec, entries, self.deadline_unix_ns, self._hub.settings)
            self._hub.registry.send(sidecar_id, message)

    def _recover(self, sidecar_id: str, missing: Sequence[LedgerEntry]) -> None:
        """A connected sidecar does not know these ranks' order: repeats it while there is time, else gives them up."""
        now = self._hub.clock()
        timely = now < self.ledger.deliver_until_unix_ns and not self.ledger.cancelled_unix_ns
        again = [e for e in missing if timely and e.state is RankState.ASKED]
        self._send_order(sidecar_id, again)
        for entry in missing:
            if entry not in again:
                text = "the sidecar came back and knows nothing of this capture: it lost its spool"
                self._give_up(entry, Reason.SIDECAR_RESTARTED, text)

    async def _follow(self) -> None:
        """Waits until every line is final; takes care of cancel, deadline and lost sidecars."""
        hub, settings = self._hub, self._hub.settings
        cancel_until = deadline_until = 0
        while open_entries := self.book.open_entries():
            now = hub.clock()
            if self.ledger.cancelled_unix_ns and not cancel_until:
                cancel_until = now + settings.cancel_wait_ns
            if now >= self.deadline_unix_ns and not deadline_until:
                deadline_until = now + settings.deadline_wait_ns
                text = f"the deadline of {self.request.spec.active_deadline_seconds} s has passed"
                self._send_all(build_cancel(self.ledger.uid, Reason.DEADLINE_EXCEEDED, text))
            for entry in open_entries:
                self._check_bounds(entry, now, cancel_until, deadline_until)
            later = [t for t in (cancel_until, deadline_until) if t] or [self.deadline_unix_ns]
            await self._wait(min(*later, now + SECOND_NS))

    def _check_bounds(self, entry: LedgerEntry, now_unix_ns: int, cancel_until: int, deadline_until: int) -> None:
        record = self._hub.registry.find(entry.sidecar_id)
        connected = record is not None and record.link is not None
        lost_since = record.lost_unix_ns if record is not None else self._began_unix_ns
        if cancel_until and now_unix_ns >= cancel_until:
            self._give_up(entry, Reason.CANCELLED, "cancelled by the user; the sidecar has not confirmed it")
        elif deadline_until and now_unix_ns >= deadline_until:
            self._give_up_at_deadline(entry, connected=connected)
        elif not connected and now_unix_ns - lost_since >= self._hub.settings.sidecar_lost_ns:
            seconds = self._hub.settings.sidecar_lost_ns // SECOND_NS
            text = f"its sidecar has not been heard of for {seconds} s: the pod is gone, or cannot reach the hub"
            self._give_up(entry, Reason.SIDECAR_LOST, text)

    def _give_up_at_deadline(self, entry: LedgerEntry, *, connected: bool) -> None:
        if not connected:
            text = f"its sidecar did not come back before the deadline; the rank was {entry.state.lower()}"
            self._give_up(entry, Reason.SIDECAR_LOST, text)
            return
        done = {
            RankState.ASKED: "the process had not taken its order",
            RankState.ARMED: "the process had its order, but no trace was begun",
            RankState.STARTED: "the trace was not complete",
            RankState.WRITTEN: "the trace was complete, but not uploaded",
        }.get(entry.state, "")
        trouble = f" ({self._writer.trouble})" if self._writer.trouble else ""
        seconds = self.request.spec.active_deadline_seconds
        self._give_up(entry, Reason.DEADLINE_EXCEEDED, f"{done} when the deadline of {seconds} s passed{trouble}")

    def _give_up(self, entry: LedgerEntry, reason: Reason, message: str) -> None:
        now = self._hub.clock()
        if (entry.sidecar_id, entry.process_id) in self._stored:
            self.book.mark_uploaded(entry, f"the trace is there, its samples may not be: {message}", now)
        else:
            self.book.fail(entry, reason, message, now)
        self._changed()

    async def _finish(self) -> None:
        uploaded = any(e.state is RankState.UPLOADED for e in self.ledger.entries)
        problem = ""
        if uploaded and not self.ledger.cancelled_unix_ns:
            problem = await self._make_report()
        now = self._hub.clock()
        passed = now >= self.deadline_unix_ns
        status, reason, message = decide_outcome(self.ledger, passed)
        if problem and status == "True":
            self.book.end_analysis("False", "AnalysisFailed", problem, now)
            where = self._hub.calls.store.locate(keys.ledger_key(self.ledger.namespace, self.ledger.uid))
            status, reason = "False", "AnalysisFailed"
            message = f"{message}, but no report: {problem}. The traces lie beside {where}"
        self.book.conclude(status, reason, message, now)

    async def _make_report(self) -> str:
        """Has the report made; what went wrong as a sentence, empty when nothing did."""
        analyze, settings = self._hub.analyze, self._hub.settings
        if analyze is None:
            self.book.end_analysis("Unknown", "NoAnalyzer", "this hub makes no reports", self._hub.clock())
            return ""
        self.book.begin_analysis(self._hub.clock())
        self._changed()
        until = max(self._hub.clock(), self.deadline_unix_ns) + settings.store_patience_ns
        while True:
            if not await self._writer.flush(until - self._hub.clock()):
                return f"the store takes no ledger: {self._writer.trouble}"
            problem = await self._analyze_once(analyze)
            if not problem or self.ledger.cancelled_unix_ns:
                break
            if self._hub.clock() >= until or not await self._store_was_away():
                return problem
        if not self.ledger.cancelled_unix_ns:
            self._report_made = True
            self.book.end_analysis("True", "ReportMade", "", self._hub.clock())
        return ""

    async def _analyze_once(self, analyze: Analyze) -> str:
        task = asyncio.ensure_future(analyze(self.ledger.namespace, self.ledger.uid))
        until = self._hub.clock() + self._hub.settings.analysis_patience_ns
        try:
            while not task.done() and not self.ledger.cancelled_unix_ns:
                now = self._hub.clock()
                if now >= until:
                    return f"the analysis took longer than {self._hub.settings.analysis_patience_ns // SECOND_NS} s"
                poked = asyncio.ensure_future(self._wait(until))
                await asyncio.wait({task, poked}, return_when=asyncio.FIRST_COMPLETED)
                poked.cancel()
            if not task.done():
                return ""
            error = task.exception()
            return "" if error is None else f"{error}" or type(error).__name__
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _store_was_away(self) -> bool:
        """After a failed analysis: True when the store does not answer now (then waits until it does again)."""
        away = False
        while True:
            try:
                await self._hub.calls.get_if_there(keys.ledger_key(self.ledger.namespace, self.ledger.uid))
            except StoreError as error:
                if not error.retryable:
                    return False
                away = True
                await asyncio.sleep(self._hub.settings.store_retry_ns / SECOND_NS)
                continue
            return away

    def _end_by_fault(self, error: Exception) -> None:
        now = self._hub.clock()
        text = f"a fault of the hub: {type(error).__name__}: {error}; see its log"
        for entry in self.book.open_entries():
            self._give_up(entry, Reason.INTERNAL, text)
        self._send_all(build_cancel(self.ledger.uid, Reason.INTERNAL, text))
        self.book.conclude("False", "Internal", text, now)

    # ------------------------------------------------------------ inside

    async def _verify(self, event: pb.CaptureEvent, record: SidecarRecord) -> None:
        """A sidecar says that the store holds a trace which this hub did not see arrive: looks."""
        while not self.ledger.outcome:
            try:
                there = await self.desk.holds(pb.TRACE, event.rank)
            except StoreError:
                await asyncio.sleep(self._hub.settings.store_retry_ns / SECOND_NS)
                continue
            entry = self.book.find(record.sidecar_id, event.process_id)
            if entry is None or entry.rank != event.rank or is_final(entry):
                return
            if there:
                self._stored.add((record.sidecar_id, event.process_id))
                self.book.apply(event, record.sidecar_id, self._hub.clock())
            else:
                text = "the sidecar says that the trace is uploaded, but the store does not have it"
                self.book.fail(entry, Reason.UPLOAD_FAILED, text, self._hub.clock())
            self._changed()
            return

    def _entry_for_upload(self, record: SidecarRecord, process_id: str) -> LedgerEntry | str:
        entry = self.book.find(record.sidecar_id, process_id)
        if entry is None:
            return "this process is not part of the capture"
        if self.ledger.outcome:
            return f"the capture has ended: {self.ledger.outcome}"
        if self.ledger.cancelled_unix_ns:
            return "the capture was cancelled; its traces are discarded"
        return entry

    def _is_held(self, entry: LedgerEntry) -> bool:
        return (entry.sidecar_id, entry.process_id) in self._held

    def _open_of(self, sidecar_id: str) -> list[LedgerEntry]:
        return [entry for entry in self.book.open_entries() if entry.sidecar_id == sidecar_id]

    def _send_all(self, message: pb.HubMessage) -> None:
        for sidecar_id in {entry.sidecar_id for entry in self.book.open_entries()}:
            self._hub.registry.send(sidecar_id, message)

    def _cancel_message(self) -> pb.HubMessage:
        return build_cancel(self.ledger.uid, Reason.CANCELLED, "cancelled by the user")

    def _changed(self) -> None:
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()
        self._poked.set()
        self._writer.touch()

    async def _wait(self, until_unix_ns: int) -> None:
        """Until something happens, or that time."""
        self._poked.clear()
        try:
            async with asyncio.timeout(max(0, until_unix_ns - self._hub.clock()) / SECOND_NS):
                await self._poked.wait()
        except TimeoutError:
            pass

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _encode(self) -> bytes:
        self.book.derive()
        return msgspec.json.format(msgspec.json.encode(self.ledger), indent=1)
