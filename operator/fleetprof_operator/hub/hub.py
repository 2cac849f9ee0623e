"""The hub: who is there, what was asked, and how far it has come. A library; no Kubernetes, no sockets.

Guarantees: a request is in the store before it is accepted; all that a restarted hub needs is there or with the
sidecars (`restore`); captures never share a rank. Everything happens in one event loop; the store is called through
threads. `server` puts gRPC in front of it.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canceller, Ledger
from fleetprof_api.request import Conflict, InvalidRequest, ProfileRequest
from fleetprof_api.telemetry.figures import FleetFigures
from fleetprof_store.base import Store, StoreError

from fleetprof_operator.hub.access.authentication import Authenticator
from fleetprof_operator.hub.access.call_refusals import CallRefusals
from fleetprof_operator.hub.capture.arm_steps import is_hopeless
from fleetprof_operator.hub.capture.environment import Analyze, CaptureEnvironment
from fleetprof_operator.hub.capture.request_capture import RequestCapture
from fleetprof_operator.hub.capture_registry import CaptureRegistry
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.planning.target_pods import FindPods
from fleetprof_operator.hub.restoration import restore_all
from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from fleetprof_operator.hub.sidecar_sessions import SidecarSessions
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord, SidecarRegistry
from fleetprof_operator.hub.stack_questions import StackQuestions
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.storage.stored_requests import list_stored
from fleetprof_operator.hub.storage.workload_costs import WorkloadRecords
from fleetprof_operator.hub.submission import (
    ALREADY,
    CaptureRefused,
    check_bounds,
    check_crowd,
    choose_namespace,
    find_stacks,
    find_suspension,
    find_unsupported,
    make_uid,
    name_capture,
)
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.stored_history import StoredHistory

log = logging.getLogger(__name__)

_NEWS_PAUSE_S = 0.05  # between two statuses of one watcher,
_NEWS_PAUSE_PER_RANK_S = 100e-6  # and this for each rank's line in them
_CLOSE_PATIENCE_NS = 2 * SECOND_NS


FindWorkload = Callable[[str, str, str], Awaitable[str]]
"""Namespace, name and uid of a pod → APIVERSION/KIND/NAME of what owns it, "" where nothing does or nobody can tell."""


def split_workload(text: str) -> tuple[str, str, str]:
    """API version, kind and name of APIVERSION/KIND/NAME; all empty where there is none."""
    rest, _, name = text.rpartition("/")
    api_version, _, kind = rest.rpartition("/")
    return (api_version, kind, name) if api_version and kind and name else ("", "", "")


class Hub:
    """Use it inside one running event loop; end it with `close`.

    `analyze` makes report.json and report.html in the store and raises when it cannot; None: no
    reports. `find_pods` tells a request's pods, `find_workload` what owns a pod; None: sidecars say what they
    belong to. `authenticate` decides who may speak to a server in front of this hub (see `server.serve`).
    """

    def __init__(
        self,
        *,
        store: Store,
        authenticate: Authenticator | None = None,
        analyze: Analyze | None = None,
        find_pods: FindPods | None = None,
        find_workload: FindWorkload | None = None,
        settings: HubSettings | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.authenticate = authenticate
        self.settings = settings or HubSettings()
        self._find_workload = find_workload
        self._calls = StoreCalls(store)
        self._registry = SidecarRegistry(self.settings)
        self.refusals = CallRefusals()
        self._clock = clock
        self.telemetry = TelemetryBoard()
        self._registry.on_drop = self.telemetry.forget
        self.history = StoredHistory(self._calls, self.telemetry, clock)
        self._arriving: list[str] = []  # the namespaces of requests that the store is just taking
        self.captures = CaptureRegistry(self.settings)
        self.stacks = StackQuestions(self._registry)
        self._environment = CaptureEnvironment(
            calls=self._calls,
            registry=self._registry,
            settings=self.settings,
            clock=clock,
            analyze=analyze,
            find_pods=find_pods,
            estimate=self.captures.estimate,
            records=WorkloadRecords(self._calls),
            find_holder=self.captures.describe_holder,
            find_earlier=self.captures.find_earlier,
            claim_place=self.captures.claim_place,
            questions=self.stacks,
        )
        self.sessions = SidecarSessions(
            self._registry, self.captures, self.telemetry, self.stacks, self.settings, clock
        )

    # ------------------------------------------------------------ for people

    async def submit(self, request: ProfileRequest, namespace: str, *, fail_fast: bool) -> pb.CaptureStatus:
        """Takes a request. `fail_fast` refuses what could only wait, but for what comes by itself in a job that is
        there: its processes, PyTorch and first optimizer steps, its turn, and, for some seconds, what a sidecar that
        was restarted has not heard yet.

        Raises InvalidRequest, CaptureRefused, StoreError (then nothing was begun).
        """
        namespace = choose_namespace(request, namespace)
        if problems := find_suspension(request) + find_unsupported(request) + find_stacks(request):
            raise InvalidRequest(problems)
        self._check_crowd(namespace)
        check_bounds(request, namespace, self.settings)
        if fail_fast:
            self._refuse_what_would_wait(request, namespace)
        return await self._take(request, namespace, make_uid(), name_capture(request), fails_fast=fail_fast)

    async def adopt(
        self, request: ProfileRequest, *, namespace: str, uid: str, name: str, requester: str = ""
    ) -> pb.CaptureStatus:
        """Takes a request that has its uid already. Known before (after any restart), it is the same capture.

        A namespace, uid and name as Kubernetes makes them; `requester` for the ledger. Raises InvalidRequest,
        CaptureRefused, StoreError (then nothing was begun).
        """
        if uid not in self.captures.by_uid and not await self._restore_all([(namespace, uid)]):
            if problems := find_unsupported(request):
                raise InvalidRequest(problems)
            self._check_crowd(namespace)
            check_bounds(request, namespace, self.settings)
            await self._take(request, namespace, uid, name)
        capture = self.captures.find(uid)
        capture.name_requester(requester)
        return capture.status()

    def knows(self, uid: str) -> bool:
        """Tells whether the capture was taken already."""
        return uid in self.captures.by_uid

    async def watch(self, ref: str) -> AsyncIterator[pb.CaptureStatus]:
        """The status of a capture now and after every change; ends with the one that is finished.

        Raises UnknownCapture.
        """
        capture = self.captures.find(ref)
        while True:
            await capture.refresh()
            version, status = capture.version, capture.status()
            yield status
            if status.finished:
                return
            await capture.wait_for_news(version)
            await asyncio.sleep(_NEWS_PAUSE_S + _NEWS_PAUSE_PER_RANK_S * len(status.ranks))

    async def cancel(self, ref: str, *, hurry: bool = False, by: Canceller = Canceller.USER) -> pb.CaptureStatus:
        """Takes a capture back as far as that goes; its end comes through `watch`. Raises UnknownCapture.

        `hurry`: at once, without waiting for sidecars to confirm.
        """
        capture = self.captures.find(ref)
        capture.cancel(hurry=hurry, by=by)
        return capture.status()

    async def fleet(self) -> list[pb.SidecarStatus]:
        """All sidecars and what they see."""
        return [record.to_status() for record in self._registry.list()]

    async def figures(self, namespace: str = "", workload: str = "", *, every_rank: bool = True) -> FleetFigures:
        """Figures of what runs now: of one namespace, or all; with the ranks of those called `workload` or kind/name.

        Without `every_rank`, with ranks only of workloads whose pods ask for metrics of each rank. Between two
        workloads the event loop gets its turn.
        """
        now = self._clock()
        self.telemetry.sweep(now)
        chosen = [board for board in self.telemetry.boards() if namespace in ("", board.namespace)]
        if workload:
            chosen = [board for board in chosen if workload in (board.name, f"{board.kind}/{board.name}")]
        figures = []
        for board in chosen:
            figures.append(board.figures(with_ranks=bool(workload) and (every_rank or board.wants_rank_metrics)))
            await asyncio.sleep(0)
        return FleetFigures(now, self.settings.telemetry_interval_ns, figures)

    async def name_workload(self, identity: pb.Identity) -> None:
        """Writes into a proved pod's identity what owns it, whatever it says; nothing where that cannot be told."""
        if self._find_workload is None:
            return
        found = await self._find_workload(identity.namespace, identity.pod_name, identity.pod_uid)
        api_version, kind, name = split_workload(found)
        identity.ClearField("workload")
        if name:
            identity.workload.api_version, identity.workload.kind, identity.workload.name = api_version, kind, name

    def put(self, key: str, data: bytes) -> None:
        """Stores a document beside the captures. Blocks. Raises StoreError."""
        self._calls.store.put(key, data)

    async def list(self) -> list[pb.CaptureStatus]:
        """All captures that this hub remembers, the newest first."""
        known = sorted(self.captures.by_uid.values(), key=lambda c: c.ledger.submitted_unix_ns, reverse=True)
        return [capture.status() for capture in known]

    def sidecars(self, namespace: str = "") -> Sequence[SidecarRecord]:
        """The sidecars of a namespace, of all for ""; also of those that were lost a while ago."""
        return self._registry.list_of(namespace) if namespace else self._registry.list()

    def count_connected(self) -> int:
        """The number of sidecars that are there."""
        return sum(record.link is not None for record in self._registry.list())

    def count_kept_bytes(self) -> int:
        """About how much memory sidecars' streams, words and telemetry take."""
        return self._registry.holdings.total_bytes + self.history.kept_bytes

    def look_up(self, uid: str) -> tuple[ProfileRequest, pb.CaptureStatus]:
        """A capture's request and how it stands. Raises UnknownCapture."""
        capture = self.captures.find(uid)
        return capture.request, capture.status()

    # ------------------------------------------------------------ life

    async def restore(self, wanted: Sequence[tuple[str, str]] | None = None, *, fails_fast: bool = False) -> None:
        """Takes up what the store knows: call it once, before sidecars connect. Raises StoreError after a while.

        `wanted` are (namespace, uid) of the only requests that matter, the oldest first; without it all that the store
        holds are read. What is not restored is nobody's: sidecars are told to let go of it. `fails_fast`: they were
        submitted with it; sidecars get a while to come back first.
        """
        until = self._clock() + self.settings.store_patience_ns
        while True:
            try:
                if wanted is None:
                    wanted = await list_stored(self._calls)
                await self._restore_all(wanted, fails_fast=fails_fast)
                return
            except StoreError as error:
                if not error.retryable or self._clock() >= until:
                    raise
                log.warning("the store cannot be read yet: %s", error)
                await asyncio.sleep(self.settings.store_retry_ns / SECOND_NS)

    async def close(self) -> None:
        """Ends the hub; unfinished requests are taken up by the next one's `restore`."""
        running = list(self.captures.tasks.values())
        unfinished = [c for c in self.captures.by_uid.values() if not c.finished]
        await asyncio.gather(*(capture.flush(_CLOSE_PATIENCE_NS) for capture in unfinished))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._calls.close()

    # ------------------------------------------------------------ inside

    def _check_crowd(self, namespace: str) -> None:
        """Raises CaptureRefused."""
        check_crowd(self.captures.count_waiting() + Counter(self._arriving), namespace, self.settings)

    async def _take(
        self, request: ProfileRequest, namespace: str, uid: str, name: str, *, fails_fast: bool = False
    ) -> pb.CaptureStatus:
        """A new capture: first in the store, then begun. Raises StoreError."""
        ledger = Ledger(uid=uid, name=name, namespace=namespace, submitted_unix_ns=self._clock())
        request_json = request.to_json()
        key = keys.request_key(namespace, uid)
        self._arriving.append(namespace)
        try:
            await self._calls.run(lambda: self._calls.store.put(key, request_json.encode()))
        finally:
            self._arriving.remove(namespace)
        capture = RequestCapture(request, request_json, LedgerBook(ledger), self._environment, fails_fast=fails_fast)
        self.captures.begin(capture)
        await asyncio.sleep(0)  # so that the status already says what it waits for, or that it is armed
        return capture.status()

    def _refuse_what_would_wait(self, request: ProfileRequest, namespace: str) -> None:
        """Raises CaptureRefused."""
        found = self._environment.resolve(request, namespace, "")
        if found.reason and is_hopeless(found, request.spec, self._clock(), self.settings):
            raise CaptureRefused(found.reason, found.message)
        holder = self.captures.describe_holder(found.targets)
        if holder and request.spec.conflict is Conflict.FAIL:
            raise CaptureRefused(ALREADY, holder)

    async def _restore_all(self, places: Sequence[tuple[str, str]], *, fails_fast: bool = False) -> bool:
        return await restore_all(self.captures, self._environment, places, fails_fast=fails_fast)
