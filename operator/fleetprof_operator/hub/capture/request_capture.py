"""One request on its way: resolve → arm → follow → analyse → end. Level-based, so that it can begin anywhere.

Here is the request's life as the hub sees it: its status, what people and sidecars tell it, and the order of its
stages. Each stage has a module, in this order: `restore_stage`, `arm_stage` with `canary_stage` in it, `follow_stage`,
`report_stage`, `trace_stage`; they share `capture_state`. A request for stacks has one alone, `stacks_stage`.

Guarantees: what is to be done next follows from the ledger and the clock, never from where the code last was, so a
request that is read back from the store goes on; a deadline and a cancel are honoured in every state; every rank
that was named ends with a reason; sidecars are told to let go only when the store holds the ledger's end.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canceller, RankState, Reason
from fleetprof_api.request import ProfileRequest, Traces

from fleetprof_operator.hub.capture import canary_stage
from fleetprof_operator.hub.capture.arm_stage import await_second_start, recover_order, resolve_and_arm
from fleetprof_operator.hub.capture.capture_state import CaptureState, PlaceState
from fleetprof_operator.hub.capture.claims import Claims
from fleetprof_operator.hub.capture.environment import CaptureEnvironment
from fleetprof_operator.hub.capture.follow_stage import follow
from fleetprof_operator.hub.capture.report_stage import find_difference, make_report
from fleetprof_operator.hub.capture.restore_stage import Restoration
from fleetprof_operator.hub.capture.stacks_stage import read_job
from fleetprof_operator.hub.capture.trace_stage import fetch_traces
from fleetprof_operator.hub.capture.upload_grants import UploadGrants
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.ledger.outcome import decide_outcome
from fleetprof_operator.hub.planning.orders import build_cancel, build_release
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.sidecars.messages import MAX_PROCESSES
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord

log = logging.getLogger(__name__)

_NEVER: Final = 1 << 62
_LINE_BYTES: Final = 1200


class RequestCapture:
    """One request. All methods are for the hub's event loop; `run` ends when the request has."""

    def __init__(
        self,
        request: ProfileRequest,
        request_json: str,
        book: LedgerBook,
        hub: CaptureEnvironment,
        *,
        restored: bool = False,
        fails_fast: bool = False,
    ) -> None:
        """`fails_fast`: see CaptureState."""
        self.request = request
        self.ledger = ledger = book.ledger
        self.finished = False
        self.saved = False  # the store holds the end: sidecars may let go
        self._request_json = request_json
        self._hub = hub
        self._state = CaptureState(request, book, hub, fails_fast=fails_fast)
        self._book = book
        self._bytes: int | None = None
        self._restoration = Restoration(self._state, restored=restored)
        self._grants = UploadGrants(
            hub.calls, ledger.namespace, ledger.uid, request.spec.limits.max_trace_bytes, hub.settings
        )
        self._claims = Claims(self._state, self._grants)

    @property
    def version(self) -> int:
        """Another one with every change of the status."""
        return self._state.version

    # ------------------------------------------------------------ what others see

    def status(self) -> pb.CaptureStatus:
        """The capture's present status."""
        location = ""
        if self._state.standing.report_made:
            find_key = keys.report_key if self.request.spec.capture is None else keys.stacks_key
            location = self._hub.calls.store.locate(find_key(self.ledger.namespace, self.ledger.uid))
        status = self._book.to_status(
            target=self.request.target_text(),
            request_json=self._request_json,
            finished=self.finished,
            report_location=location,
        )
        status.queue_position = self._state.standing.queue_position
        return status

    async def refresh(self) -> None:
        """Prepares `status` of many ranks without holding anybody up."""
        await self._book.forms.refresh()

    async def wait_for_news(self, seen_version: int) -> None:
        """Returns when the status is newer than that version."""
        await self._state.wait_for_news(seen_version)

    def describe_hold(self, targets: Sequence[RankTarget]) -> str:
        """A sentence about the ranks among these processes that this request still captures; empty when none is."""
        canary = self._state.standing.canary
        if self.finished or not (canary or self._book.lines.open_count):
            return ""
        reserved = canary.reserved if canary is not None else frozenset()
        known = ((t.rank, (t.sidecar_id, t.process.process_id)) for t in targets)
        ranks = sorted(rank for rank, line in known if line in reserved or self._book.lines.is_open(*line))
        if not ranks:
            return ""
        shown = ", ".join(map(str, ranks[:10])) + (" and more" if len(ranks) > 10 else "")
        return (
            f"capture {self.ledger.name} ({self.ledger.uid}) is capturing rank {shown} of "
            f"{self.request.target_text()}; wait for its end or cancel it"
        )

    @property
    def queue_key(self) -> tuple[int, str]:
        """Its place among those that wait for the same ranks: the least comes first."""
        return self.ledger.submitted_unix_ns, self.ledger.uid

    @property
    def holds_place(self) -> bool:
        """Tells whether it is one of those under way."""
        return not self.finished and (self._state.standing.place is PlaceState.HELD or bool(self.ledger.entries))

    @property
    def wants_place(self) -> bool:
        """Tells whether it is ready to be one of them."""
        return not self.finished and not self.holds_place and self._state.standing.place is PlaceState.WANTED

    def want_place(self) -> None:
        """It is ready for its capture."""
        self._state.want_place()

    def take_place(self) -> None:
        """It is under way from now on."""
        self._state.take_place()

    def waits_for(self, targets: Sequence[RankTarget]) -> bool:
        """Tells whether it waits for one of these processes of its namespace, or may do so."""
        standing = self._state.standing
        queued = any((t.sidecar_id, t.process.process_id) in standing.queued for t in targets)
        return not self.finished and (queued or standing.looks_for_pods)

    def count_bytes(self) -> int:
        """About how much memory it takes once it has ended."""
        if self._bytes is None:
            texts = sum(len(entry.message) for entry in self.ledger.entries)
            self._bytes = 2 * len(self._request_json) + _LINE_BYTES * len(self.ledger.entries) + texts
        return self._bytes

    def remember_finished(self) -> None:
        """Makes this a record of a request that had ended before the hub began."""
        self.finished = self.saved = True
        if any(c.type == "Analyzed" and c.status == "True" for c in self.ledger.conditions):
            self._state.note_report()

    # ------------------------------------------------------------ what others tell

    def name_requester(self, requester: str) -> None:
        """Notes who asked, by admission's word; the first name stands."""
        self._book.name_requester(requester)

    def cancel(self, *, hurry: bool = False, by: Canceller = Canceller.USER) -> None:
        """A cancel; again or after the end it does nothing. `hurry` does not wait for sidecars' answers."""
        if hurry:
            self._state.hurry()
        if self._book.cancel(self._hub.clock(), by):
            self._state.send_all(self._cancel_message())  # at once: before any refusal to upload
            self._state.note_change()
            self._state.turn()

    def hear(self, event: pb.CaptureEvent, record: SidecarRecord) -> None:
        """A sidecar's word about one of its processes."""
        now, sidecar_id = self._hub.clock(), record.sidecar_id
        if self.ledger.outcome:
            if self.saved:
                self._hub.registry.send(sidecar_id, build_release(self.ledger.uid))
            return
        entry = self._book.lines.find(sidecar_id, event.process_id)
        if entry is None:
            if self._restoration.adopts and self._book.lines.count_of(sidecar_id) < MAX_PROCESSES:
                self._book.adopt(event, sidecar_id, record.identity, now)
                self._restoration.note_held(sidecar_id, event.process_id)
                self._state.note_change()
            return
        # A word that follows a hello says as well as the hello that the sidecar holds the order.
        self._restoration.note_held(sidecar_id, event.process_id)
        stored = self._state.is_stored((sidecar_id, event.process_id))
        if event.state == pb.UPLOADED and not stored:
            self._claims.check(event, entry)
        elif event.state == pb.FAILED and stored:
            self._book.mark_uploaded(entry, f"the trace is there, its samples are not: {event.message}", now)
            self._state.note_change()
        elif self._book.apply(event, sidecar_id, now):
            self._state.note_change()

    def hear_canary(self, event: pb.CaptureEvent, record: SidecarRecord) -> None:
        """A sidecar's word about the rank that records first."""
        canary_stage.hear(self._state, event, record)

    def welcome(self, record: SidecarRecord, held: Iterable[pb.CaptureEvent]) -> None:
        """A sidecar is back (or new) with all that it holds of this request."""
        sidecar_id = record.sidecar_id
        if self.ledger.outcome:
            if self.saved:
                self._hub.registry.send(sidecar_id, build_release(self.ledger.uid))
            return
        canary_stage.welcome(self._state, record)
        known = set()
        for event in held:
            known.add(event.process_id)
            self.hear(event, record)
        self._restoration.note_restated(sidecar_id)
        missing = [e for e in self._state.open_entries_of(sidecar_id) if e.process_id not in known]
        if missing and not self._restoration.under_way:
            recover_order(self._state, sidecar_id, missing)
        if self._state.open_entries_of(sidecar_id) and self.ledger.cancelled_unix_ns:
            self._hub.registry.send(sidecar_id, self._cancel_message())
        self._state.poke()

    async def grant(self, upload_request: pb.UploadRequest, record: SidecarRecord) -> None:
        """Answers a sidecar's wish to upload."""
        entry = self._book.find_for_upload(record.sidecar_id, upload_request.process_id)
        if isinstance(entry, str):
            answer = pb.UploadGrant(
                capture_id=upload_request.capture_id, process_id=upload_request.process_id, object=upload_request.object
            )
            answer.refusal = entry
        else:
            answer = await self._grants.grant(upload_request, record.sidecar_id, entry)
        self._hub.registry.send(record.sidecar_id, pb.HubMessage(upload_grant=answer))

    async def accept(self, completion: pb.UploadDone, record: SidecarRecord) -> None:
        """Takes a finished upload."""
        entry = self._book.find_for_upload(record.sidecar_id, completion.process_id)
        answer: pb.UploadVerdict | None
        if isinstance(entry, str):
            answer = pb.UploadVerdict(
                capture_id=completion.capture_id, process_id=completion.process_id, object=completion.object
            )
            answer.message = entry
        else:
            answer = await self._grants.complete(completion, record.sidecar_id)
            if answer is not None and answer.accepted and completion.object in (pb.TRACE, pb.SUMMARY):
                line = record.sidecar_id, completion.process_id
                self._state.note_stored(line, with_trace=completion.object == pb.TRACE)
                self._state.poke()
        if answer is not None:
            self._hub.registry.send(record.sidecar_id, pb.HubMessage(upload_verdict=answer))

    # ------------------------------------------------------------ the way

    async def run(self) -> None:
        """Brings the request to its end, whatever happens. Raises nothing but CancelledError."""
        writer = asyncio.create_task(self._state.writer.run())
        try:
            try:
                await self._go()
            except Exception as error:
                log.exception("request %s ends by a fault of the hub", self.ledger.uid)
                self._end_by_fault(error)
            self._state.note_change()
            self.saved = await self._state.writer.flush(self._hub.settings.store_patience_ns, unless_refused=True)
            self.finished = True
            self._state.note_change()
            await self._grants.close()
            self.saved = await self._state.writer.flush(_NEVER)
            for sidecar_id in self._book.lines.sidecars():
                self._hub.registry.send(sidecar_id, build_release(self.ledger.uid))
        finally:
            self._book.forms.forget()
            writer.cancel()
            await asyncio.gather(writer, self._claims.close(), return_exceptions=True)

    async def flush(self, patience_ns: int) -> None:
        """Waits a while for the store to have the ledger."""
        await self._state.writer.flush(patience_ns)

    async def _go(self) -> None:
        self._state.note_change()
        if self._restoration.under_way:
            await self._restoration.complete()
        if self.request.spec.capture is not None:
            await read_job(self._state, self.request.spec.capture.stacks)
            return
        if not self.ledger.entries and not await resolve_and_arm(self._state):
            return
        await follow(self._state)
        while await await_second_start(self._state):
            if not await resolve_and_arm(self._state):
                return
            await follow(self._state)
        await self._finish()

    async def _finish(self) -> None:
        await canary_stage.remember(self._state)
        uploaded = any(e.state is RankState.UPLOADED for e in self.ledger.entries)
        problem = difference = ""
        if uploaded and not self.ledger.cancelled_unix_ns:
            problem = await make_report(self._state)
            difference = await find_difference(self._state)
            if self._state.standing.report_made and self.request.spec.traces is Traces.AUTO:
                await fetch_traces(self._state)
        now = self._hub.clock()
        passed = now >= self._state.deadline_unix_ns
        status, reason, message = decide_outcome(self.ledger, passed, difference)
        if problem and status == "True":
            self._book.end_analysis("False", "AnalysisFailed", problem, now)
            where = self._hub.calls.store.locate(keys.ledger_key(self.ledger.namespace, self.ledger.uid))
            status, reason = "False", "AnalysisFailed"
            message = f"{message}, but no report: {problem}. The traces lie beside {where}"
        self._book.conclude(status, reason, message, now)

    def _end_by_fault(self, error: Exception) -> None:
        now = self._hub.clock()
        text = f"a fault of the hub: {type(error).__name__}: {error}; see its log"
        for entry in self._book.lines.open_entries():
            self._state.give_up(entry, Reason.INTERNAL, text)
        self._state.send_all(build_cancel(self.ledger.uid, Reason.INTERNAL, text))
        self._book.conclude("False", "Internal", text, now)

    def _cancel_message(self) -> pb.HubMessage:
        return build_cancel(self.ledger.uid, Reason.CANCELLED, f"cancelled by {self.ledger.cancelled_by}")
