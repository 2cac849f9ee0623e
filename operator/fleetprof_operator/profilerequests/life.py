"""One ProfileRequest from its first sight to its end: what kopf's daemon runs.

    suspended → taken by the hub → (waits for pods → captured → uploaded → analysed: the hub's) → end written

Guarantees: begun anew at any moment it goes on from what the hub and the object say; all that a user can do wrong ends
in a condition with what to do; a request that is taken back is withdrawn from the ranks, within a bound: a hub or store
that is away holds up no deletion for longer. The last write is the one with `completionTime`, after which nothing of
ours is left on the object.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Final

from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Conflict, InvalidRequest, ProfileRequest
from fleetprof_store.base import StoreError
from fleetprof_store.location import StoreLocation

from fleetprof_operator.analyses.analyses import AnalyzerJobs
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.planning.target_pods import LOOKING
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.submission import QUEUED, TOO_MANY, CaptureRefused, UnknownCapture
from fleetprof_operator.hub.waiting_line import WaitingLine
from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.metrics import Metrics
from fleetprof_operator.profilerequests.audit import audit_ended, audit_taken
from fleetprof_operator.profilerequests.headline import find_page, read_headline, say_first
from fleetprof_operator.profilerequests.notices import Notices
from fleetprof_operator.profilerequests.records import Record, find_turn, request_path, to_request
from fleetprof_operator.profilerequests.requesters import UNKNOWN, Requesters
from fleetprof_operator.profilerequests.status import Fact, build_status, finish, from_capture
from fleetprof_operator.profilerequests.status_writer import StatusWriter
from fleetprof_operator.profilerequests.target_pods import TargetWatches
from fleetprof_operator.tasks import run_beside

log = logging.getLogger(__name__)

WITHDRAW_S: Final = 120.0
"""So long a deletion waits for ranks to be released: longer than the hub waits for sidecars to confirm a cancel."""
_ADOPT_AGAIN_S: Final = 3.0
_QUEUE_S: Final = 1.0
_LOOKS: Final = 10.0  # of all that wait in a namespace, in a second
_MOST_QUEUE_S: Final = 30.0
_LOOK_S: Final = 0.3  # between two looks at a capture that changes, and
_LOOK_PER_RANK_S: Final = 1e-4  # this for each rank in it
_REPORT_S: Final = 30.0  # for the store to give the report's headline


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestServices:
    """Objects that all requests share. `owner` is this release; `targets` has the pods' watch of each open request."""

    cluster: Cluster
    hub: Hub
    calls: StoreCalls
    metrics: Metrics
    owner: str
    report_url: str
    store: StoreLocation
    requesters: Requesters
    analyses: AnalyzerJobs | None
    targets: TargetWatches
    waiting_line: WaitingLine = field(default_factory=WaitingLine)


class RequestLife:
    """One request. `run` ends when it has; cancel it to leave it to the next operator."""

    def __init__(self, record: Record, services: RequestServices) -> None:
        self._record = record
        self._services = services
        metadata = record.metadata
        self._uid, self._namespace, self._name = metadata["uid"], metadata["namespace"], metadata["name"]
        self._turn = find_turn(metadata)
        self._target = ""
        self._requester = ""
        self._status: Json = record.body.get("status") or {}
        self._wanted: Json = {}
        self._notices = Notices(services.cluster, metadata)
        self._writer = StatusWriter(
            services.cluster,
            request_path(self._namespace, self._name),
            self._uid,
            self._status,
            on_write=lambda: services.metrics.writes.labels("status").inc(),
        )

    async def run(self) -> None:
        """Brings the request to its end and writes it."""
        try:
            await run_beside(self._go(), self._writer.run(), self._keep_generation())
        finally:
            self._services.waiting_line.leave(self._namespace, self._uid)

    async def withdraw(self) -> None:
        """The request is deleted: takes its capture back, and waits for that within a bound."""
        try:
            request, _ = self._services.hub.look_up(self._uid)
            await self._services.hub.cancel(self._uid)
        except UnknownCapture:
            return  # nothing was begun
        try:
            async with asyncio.timeout(WITHDRAW_S):
                capture = await run_beside(self._follow_with_pods(request), self._writer.run())
            wanted = finish(from_capture(capture), capture.completed_unix_ns)
            self._note_end(wanted, capture)
            self._show(wanted["facts"], wanted)
        except TimeoutError:
            log.warning("the deletion goes on although ranks did not confirm within %g s", WITHDRAW_S)

    async def write_end(self) -> None:
        """Writes what `withdraw` found; a request that is gone already does not mind."""
        if self._wanted:
            async with asyncio.timeout(WITHDRAW_S):
                await run_beside(self._writer.flush(), self._writer.run())

    # ------------------------------------------------------------ the way

    async def _go(self) -> None:
        self._requester = await self._services.requesters.find(self._record.body)
        try:
            request = to_request(self._record.body)
        except InvalidRequest as error:
            await self._end("False", "Invalid", "; ".join(error.problems))
            return
        self._target = request.target_text()
        while self._record.is_suspended and not self._record.is_withdrawn:
            self._show({"Succeeded": Fact("Unknown", "Suspended", "set spec.suspend to false to begin")})
            await self._record.wait()
        if self._record.is_suspended:
            await self._end("False", "Cancelled", f"cancelled by {self._record.canceller} before it was begun")
            return
        was_taken = self._services.hub.knows(self._uid)  # before a restart: it was told then
        if await self._take(request):
            if not was_taken:
                audit_taken(self._record.metadata, self._requester, request)
            self._services.waiting_line.leave(self._namespace, self._uid)
            if self._services.analyses and (cuts := self._services.analyses.describe_cuts(request.spec.analysis)):
                await self._give_notice("Warning", "AnalysisCut", cuts)
            await self._end_with(await self._follow_with_pods(request))

    async def _take(self, request: ProfileRequest) -> bool:
        """Has the hub take the request, once it is its turn. False when the request has ended instead."""
        until = time.monotonic() + request.spec.active_deadline_seconds
        while True:
            try:
                until += await self._await_turn()
                await self._services.hub.adopt(
                    request,
                    namespace=self._namespace,
                    uid=self._uid,
                    name=self._name,
                    requester=self._requester,
                )
            except InvalidRequest as error:
                await self._end("False", "Unsupported", "; ".join(error.problems))
                return False
            except CaptureRefused as refusal:
                patient = refusal.reason == TOO_MANY and request.spec.conflict is Conflict.WAIT
                if not patient:
                    await self._end("False", refusal.reason, str(refusal))
                    return False
                if self._record.is_withdrawn:
                    await self._end("False", "Cancelled", f"cancelled by {self._record.canceller} while it waited")
                    return False
                self._services.waiting_line.hold(self._namespace, self._uid, self._turn)
                until += await self._wait_in_queue(str(refusal))
                continue
            except StoreError as error:
                message = f"the object store does not take the request: {error}"
                if time.monotonic() >= until or self._record.is_withdrawn:
                    await self._end("False", "StoreUnavailable", message)
                    return False
                self._show({"Succeeded": Fact("Unknown", "Waiting", message)})
                await asyncio.sleep(_ADOPT_AGAIN_S)
                continue
            if self._record.is_withdrawn:
                await self._services.hub.cancel(self._uid, by=self._record.canceller)
            return True

    async def _await_turn(self) -> float:
        """Waits while those before are being taken; for how many seconds. Raises CaptureRefused if they are not."""
        line, waited = self._services.waiting_line, 0.0
        while not self._services.hub.knows(self._uid) and not self._record.is_withdrawn:
            before = line.find_place(self._namespace, self._turn) - 1
            if not before:
                break
            position = f"{before} requests of namespace {self._namespace} wait before"
            if line.is_held(self._namespace, self._turn):
                raise CaptureRefused(TOO_MANY, position)
            waited += await self._wait_in_queue(position) if waited else await self._wait_to_be_first(_QUEUE_S)
        return waited

    async def _wait_in_queue(self, why: str) -> float:
        """Shows its place, and waits for a while: for how many seconds. The farther its place, the rarer its looks."""
        place = self._services.waiting_line.find_place(self._namespace, self._turn)
        fact = Fact("Unknown", "Waiting", f"place {place} in the namespace's queue: {why}")
        facts = {"TargetsResolved": Fact("False", QUEUED, fact.message), "Succeeded": fact}
        self._show(facts, {"queuePosition": place})
        await self._tell(facts)
        if place == 1:
            await asyncio.sleep(_QUEUE_S)
            return _QUEUE_S
        return await self._wait_to_be_first(min(_QUEUE_S * max(1.0, place / _LOOKS), _MOST_QUEUE_S))

    async def _wait_to_be_first(self, timeout_s: float) -> float:
        began = time.monotonic()
        await self._services.waiting_line.wait_to_be_first(self._namespace, self._turn, timeout_s)
        return time.monotonic() - began

    async def _follow_with_pods(self, request: ProfileRequest) -> pb.CaptureStatus:
        """Shows the capture as it goes, and tells the hub of its pods meanwhile; its last status."""
        with self._services.targets.hold(self._uid, self._namespace, request) as pods:
            return await run_beside(self._follow(), pods.run())

    async def _follow(self) -> pb.CaptureStatus:
        async for capture in self._services.hub.watch(self._uid):
            if capture.finished:
                return capture
            wanted = from_capture(capture)
            self._show(wanted["facts"], wanted)
            await self._tell(wanted["facts"])
            await asyncio.sleep(_LOOK_S + _LOOK_PER_RANK_S * len(capture.ranks))
        raise RuntimeError("a capture's watch ended before the capture")

    # ------------------------------------------------------------ the end

    async def _end(self, status: str, reason: str, message: str) -> None:
        """Ends a request of which there is no capture."""
        await self._write_end({"facts": {"Succeeded": Fact(status, reason, message)}}, None)

    async def _end_with(self, capture: pb.CaptureStatus) -> None:
        wanted = from_capture(capture)
        judged = wanted["facts"].get("Analyzed", Fact("Unknown", ""))
        if judged.status == "True":
            stacks = self._services.hub.look_up(self._uid)[0].spec.capture is not None
            wanted["headline"] = say_first(judged.message) if stacks else await self._read_headline()
            find_key = keys.stacks_key if stacks else keys.report_page_key
            wanted["storeURL"] = self._locate(find_key(self._namespace, self._uid))
            wanted["reportURL"] = find_page(self._services.report_url, wanted["storeURL"], self._record.metadata)
        await self._write_end(wanted, capture)

    async def _write_end(self, wanted: Json, capture: pb.CaptureStatus | None) -> None:
        ended = capture.completed_unix_ns if capture is not None else 0
        wanted = finish(wanted, ended or time.time_ns())
        self._note_end(wanted, capture)
        await self._tell(wanted["facts"])
        self._show(wanted["facts"], wanted)
        await self._writer.flush()

    def _note_end(self, wanted: Json, capture: pb.CaptureStatus | None) -> None:
        end = wanted["facts"]["Succeeded"]
        self._services.metrics.note_end(end.reason, capture)
        audit_ended(self._record.metadata, self._requester or UNKNOWN, self._target, end, capture)

    async def _read_headline(self) -> Json:
        key = keys.report_key(self._namespace, self._uid)
        try:
            async with asyncio.timeout(_REPORT_S):
                data = await self._services.calls.get_if_there(key)
        except (StoreError, TimeoutError) as error:
            log.warning("the report cannot be read for its headline: %s", error)
            return {}
        return read_headline(data) if data is not None else {}

    def _locate(self, key: str) -> str:
        """With what a reader needs to find that store; without a credential, since a StoreLocation holds none."""
        return self._services.calls.store.locate(key) + self._services.store.settings()

    # ------------------------------------------------------------ what people see

    def _show(self, facts: dict[str, Fact], wanted: Json | None = None) -> None:
        self._wanted = {**(wanted or {}), "facts": facts, "owner": self._services.owner}
        if self._requester:
            self._wanted["requester"] = self._requester
        self._status = build_status(
            self._status,
            self._wanted,
            target=self._target,
            generation=self._record.metadata["generation"],
            now_unix_ns=time.time_ns(),
        )
        self._writer.want(self._status)

    async def _keep_generation(self) -> None:
        """A change of the object that changes nothing else is still seen in `observedGeneration`."""
        while True:
            await self._record.wait()
            if self._wanted:
                self._show(self._wanted["facts"], self._wanted)

    async def _tell(self, facts: dict[str, Fact]) -> None:
        """An Event for what people want to know of, once each."""
        end, targets = facts.get("Succeeded", Fact("Unknown", "")), facts.get("TargetsResolved")
        if end.status == "Unknown" and end.reason == "Waiting" and targets is not None:
            if targets.reason == LOOKING:
                return
            kind, reason, message = "Normal", targets.reason, targets.message
        elif end.status == "Unknown" and end.reason == "Capturing":
            kind, reason, message = "Normal", end.reason, (targets.message if targets is not None else end.message)
        elif end.status == "Unknown" and end.reason == "Analyzing":
            kind, reason, message = "Normal", end.reason, end.message
        elif end.status != "Unknown":
            kind, reason, message = ("Normal" if end.status == "True" else "Warning"), end.reason, end.message
        else:
            return
        await self._give_notice(kind, reason, message)

    async def _give_notice(self, kind: str, reason: str, message: str) -> None:
        if await self._notices.tell(kind, reason, message):
            log.info("%s: %s", reason, message)
            self._services.metrics.writes.labels("event").inc()
