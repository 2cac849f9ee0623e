"""kopf's handlers: what is done when a ProfileRequest appears, changes or goes.

kopf is used for our own kind only, as a watch with one daemon per unfinished request. The daemon's finalizer keeps a
request until its capture is withdrawn; kopf puts it on and takes it off.

Guarantees: no state is kept in annotations; a request whose daemon could not run (deleted while the operator was away)
is withdrawn all the same. So nothing is begun before the finalizer is there: a request that is deleted without it while
no operator runs is never seen again, and its ledger would stay without an end.
Rights: list, watch and patch profilerequests; patch profilerequests/status.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

import kopf
from fleetprof_api.ledger import Canceller
from fleetprof_api.process.log import about

from fleetprof_operator.analyses.analyses import AnalyzerJobs
from fleetprof_operator.hub.submission import UnknownCapture
from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.ownership.request_ownership import RequestOwnership
from fleetprof_operator.profilerequests.later_changes import LaterChanges
from fleetprof_operator.profilerequests.life import WITHDRAW_S, RequestLife, RequestServices
from fleetprof_operator.profilerequests.records import PLURAL, Record, Records, find_turn
from fleetprof_operator.profilerequests.retention import Retention
from fleetprof_operator.profilerequests.status import is_finished

log = logging.getLogger(__name__)

_INSTANT_S: Final = 2.0  # a daemon that ends so soon after a deletion costs no further cycle
_LAST_WORDS_S: Final = 5.0
_FINALIZER_S: Final = 20.0  # a request that cannot get its finalizer is begun after this all the same


class Control:
    """The handlers' state: the requests that are ours and what is running for them. `stop`: the operator ends."""

    def __init__(
        self,
        services: RequestServices,
        records: Records,
        retention: Retention,
        later_changes: LaterChanges,
        analyses: AnalyzerJobs | None,
        ownership: RequestOwnership,
        stop: asyncio.Event,
    ) -> None:
        self._stop = stop
        self._ownership = ownership
        self._services = services
        self._records = records
        self._retention = retention
        self._later_changes = later_changes
        self._analyses = analyses
        self._tasks: set[asyncio.Task[None]] = set()

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Adds the handlers."""
        kind: dict[str, Any] = {"group": "fleetprof.io", "version": "v1alpha1", "plural": PLURAL, "registry": registry}
        # kopf begins nothing for any request before it has indexed all that are there.
        kopf.index(**kind)(self.on_index)
        kopf.on.event(**kind)(self.on_event)
        kopf.daemon(
            **kind,
            when=self._is_to_do,
            cancellation_backoff=WITHDRAW_S + 2 * _LAST_WORDS_S,
            cancellation_timeout=_LAST_WORDS_S,
        )(self.run_daemon)
        kopf.on.login(registry=registry)(_log_in)
        kopf.on.startup(registry=registry)(self._configure)

    async def on_index(self, body: Mapping[str, Any], **_: Any) -> None:
        """Indexes requests that wait, so that after any restart they are taken in the order of their turns."""
        metadata, line = body["metadata"], self._services.waiting_line
        namespace, uid = metadata["namespace"], metadata["uid"]
        record = Record(dict(body))
        is_over = is_finished(body.get("status")) or record.is_withdrawn or record.is_suspended
        if is_over or self._services.hub.knows(uid) or not self._ownership.serves(body):
            line.leave(namespace, uid)
        else:
            line.join(namespace, uid, find_turn(metadata))

    async def on_event(self, event: Mapping[str, Any], **_: Any) -> None:
        """Any change of any request; before the daemon is begun or ended for it."""
        body: Json = event["object"]
        uid = body["metadata"]["uid"]
        if event["type"] == "DELETED":
            self._services.waiting_line.leave(body["metadata"]["namespace"], uid)
            if self._records.find(uid) is None:
                return  # another release's
            self._records.forget(uid)
            self._retention.forget(uid)
            self._later_changes.forget(uid)
            await self._take_back(uid, Canceller.USER)
            if self._analyses is not None:
                self._start(self._analyses.remove(uid))
            return
        if not self._ownership.serves(body):
            return
        record = self._records.note(body)
        self._retention.note(body)
        self._later_changes.note(body)
        if record.is_withdrawn:
            await self._take_back(uid, record.canceller)

    async def run_daemon(self, uid: str, stopped: kopf.DaemonStopped, **_: Any) -> None:
        """The daemon of one request."""
        record = self._records.find(uid)
        if record is None:
            return
        metadata = record.metadata
        with about(capture=uid, namespace=metadata["namespace"], name=metadata["name"]):
            life = RequestLife(record, self._services)
            running = asyncio.create_task(self._run_once_held(life, record))
            stopping = asyncio.create_task(_wait(stopped))
            try:
                await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done() and not running.done() and "deletionTimestamp" not in record.metadata:
                    # It has ended, as its own last write tells kopf; or the operator ends.
                    await asyncio.wait(
                        {running}, timeout=_LAST_WORDS_S if is_finished(record.body.get("status")) else 0
                    )
                if running.done():
                    running.result()
                    return
            finally:
                for task in (running, stopping):
                    task.cancel()
                await asyncio.gather(running, stopping, return_exceptions=True)
            if "deletionTimestamp" in record.metadata:
                if await self._unless_stopped(life.withdraw()):
                    # Once this daemon has ended: kopf, woken by that very write, finds it so and lets the object go.
                    self._start(life.write_end())
                else:
                    await self._give_up(uid)

    async def close(self) -> None:
        """Ends what still runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_to_do(self, body: Mapping[str, Any], status: Mapping[str, Any], **_: Any) -> bool:
        return not is_finished(status) and self._ownership.serves(body)

    def _configure(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        """Nothing of kopf's own names on our objects, no Events of its own, no look at kinds and namespaces."""
        settings.persistence.finalizer = self._ownership.finalizer
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="fleetprof.io")
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="fleetprof.io")
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.background.instant_exit_timeout = _INSTANT_S

    async def _run_once_held(self, life: RequestLife, record: Record) -> None:
        """Runs a life as soon as a deletion would wait for it."""
        try:
            async with asyncio.timeout(_FINALIZER_S):
                while not self._ownership.holds(record.body):
                    await record.wait()
        except TimeoutError:
            log.warning("the request begins without its finalizer, which could not be set within %g s", _FINALIZER_S)
        await life.run()

    async def _give_up(self, uid: str) -> None:
        """Ends the ledger of a deleted request while there is somebody to do it: its object goes with this operator."""
        with suppress(UnknownCapture, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._services.hub.cancel(uid, hurry=True)
                async for capture in self._services.hub.watch(uid):
                    if capture.finished:
                        return

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Does the work. False when the operator ends first."""
        doing, stopping = asyncio.create_task(work), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            for task in (doing, stopping):
                task.cancel()
            await asyncio.gather(doing, stopping, return_exceptions=True)

    async def _take_back(self, uid: str, by: Canceller) -> None:
        with suppress(UnknownCapture):  # never begun, or over
            await self._services.hub.cancel(uid, by=by)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _wait(stopped: kopf.DaemonStopped) -> None:
    await stopped.wait()


def _log_in(**named: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**named) or kopf.login_with_kubeconfig(**named)
