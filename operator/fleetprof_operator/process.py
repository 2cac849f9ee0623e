"""Hub, kopf and probes in one event loop: the operator as a whole, from its start to its end.

Order matters. Requests are listed and restored from the store before a sidecar may connect, since a sidecar is told to
let go of what the hub does not know; and the hub listens before kopf begins.

Guarantees: a store or an API server that is away at the start is waited for, unready and alive; an orderly end leaves
every unfinished capture to the next operator, with its ledger in the store.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import grpc.aio
import kopf
import msgspec
from fleetprof_api.hub.analyses_pb2_grpc import add_AnalysesServicer_to_server
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_store.base import Store, StoreError

from fleetprof_operator.analyses.analyses import AnalyzerJobs
from fleetprof_operator.analyses.service import AnalysesService
from fleetprof_operator.assembly import bound_hub, make_analyses, make_leadership
from fleetprof_operator.health import Health
from fleetprof_operator.held_pods.patience import Patience
from fleetprof_operator.hub.access.authentication import Authenticator
from fleetprof_operator.hub.capture.environment import AnalysisOrder, Analyze
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import RunningServer, serve
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.storage.store_probe import StoreProbe
from fleetprof_operator.hub.telemetry.snapshot import take_snapshot
from fleetprof_operator.identity.account_tokens import AccountTokens
from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.identity.mounted_certificate import MountedCertificate
from fleetprof_operator.kubernetes.cluster import Cluster, wait_to_try_again
from fleetprof_operator.kubernetes.namespace_pods import SharedPods
from fleetprof_operator.metrics import Metrics
from fleetprof_operator.ownership.relay import Relay
from fleetprof_operator.ownership.request_ownership import RequestOwnership
from fleetprof_operator.pod_workloads import PodWorkloads
from fleetprof_operator.policies.assembly import Policies
from fleetprof_operator.profilerequests.control import Control
from fleetprof_operator.profilerequests.later_changes import LaterChanges
from fleetprof_operator.profilerequests.life import RequestServices
from fleetprof_operator.profilerequests.records import PATH, PLURAL, Records, find_turn
from fleetprof_operator.profilerequests.requesters import Requesters
from fleetprof_operator.profilerequests.retention import Retention
from fleetprof_operator.profilerequests.status import is_finished
from fleetprof_operator.profilerequests.target_pods import TargetWatches
from fleetprof_operator.settings import Settings
from fleetprof_operator.standby import Standby
from fleetprof_operator.tasks import await_first_end, heed_signals, run_unless_stopped
from fleetprof_operator.web.connections import Connections
from fleetprof_operator.web.figures_page import serve_figures
from fleetprof_operator.web.probes import serve_probes

log = logging.getLogger(__name__)


class Operator:
    """One operator. `hub_server` (or `relay`, while it stands by) and `probe_server` are there once it listens.

    Use it inside one running event loop. Without `certificates` it serves plain text, on loopback only.
    `analysis_authenticator` tells whose pod an analyzer Job's token is; None: their pods are given nothing.
    `readers` may read /figures; None: nobody.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        cluster: Cluster,
        store: Store,
        authenticator: Authenticator,
        certificates: CertificateKeeper | MountedCertificate | None,
        analysis_authenticator: Authenticator | None = None,
        readers: AccountTokens | None = None,
        hub_settings: HubSettings | None = None,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._certificates = certificates
        self._readers = readers
        self._obstacle = "starting"
        self._lease_cluster = cluster.apart()
        self._leadership = make_leadership(settings, self._lease_cluster)
        self._standby = Standby(settings, self._leadership) if self._leadership is not None else None
        namespaced = bool(settings.namespaces)
        self._ownership = RequestOwnership(cluster, namespaced=namespaced, own_lease="".join(settings.leases[:1]))
        self._records = Records()
        self._retention = Retention(cluster)
        self._targets = TargetWatches(SharedPods(cluster))
        self._metrics = Metrics(self._records.count_states)
        self._analyses = make_analyses(settings, cluster, self._metrics)
        self._calls = StoreCalls(store)
        self._probe = StoreProbe(self._calls, settings.namespace)
        self._health = Health(self._leadership, self._probe, self._records.count_age_s)
        self._metrics.registry.register(self._health)
        if self._leadership is not None:
            self._leadership.find_own_trouble = self._health.find_trouble
        self._analyses_service = self._make_analyses_service(store, analysis_authenticator)
        self.hub = Hub(
            store=store,
            authenticate=authenticator,
            analyze=None if self._analyses is None else _time(self._analyses, self._metrics),
            find_pods=self._targets.find_pods,
            find_workload=PodWorkloads(cluster).find,
            settings=hub_settings or bound_hub(settings),
        )
        self._metrics.show_hub(self.hub)
        requesters = Requesters(cluster, settings.requester_guard, settings.account_name)
        policies = Policies.assemble(settings, cluster, self.hub, self._metrics, requesters)
        policies.register(self._metrics.registry)
        certificate = certificates.current if certificates is not None else None
        self.policies = policies.make_control(self._ownership.serves, certificate)
        self._later_changes = LaterChanges(cluster, on_write=self._metrics.writes.labels("status").inc)
        self._services = RequestServices(
            cluster=cluster,
            hub=self.hub,
            calls=self._calls,
            metrics=self._metrics,
            owner=settings.owner,
            report_url=settings.report_url,
            store=settings.store,
            requesters=requesters,
            analyses=self._analyses,
            targets=self._targets,
        )
        self.hub_server: RunningServer | None = None
        self.probe_server: Connections | None = None

    async def _read_figures(self, namespace: str, workload: str) -> bytes | None:
        if self.hub_server is None:  # it stands by, or has not begun
            return None
        # Whoever may ask sees all namespaces: no more of ranks than their owners let be told.
        figures = await self.hub.figures(namespace, workload, every_rank=False)
        return await asyncio.to_thread(msgspec.json.encode, figures)

    @property
    def relay(self) -> Relay | None:
        """The relay that hands callers on, while this process stands by."""
        return None if self._standby is None else self._standby.relay

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or SIGTERM or SIGINT come. Raises OSError when it cannot listen."""
        async with AsyncExitStack() as cleanup:
            cleanup.callback(self._calls.close)
            if self._analyses_service is not None:
                cleanup.callback(self._analyses_service.close)
            cleanup.push_async_callback(self._lease_cluster.close)
            if self._leadership is not None:
                cleanup.push_async_callback(self._leadership.let_go)
            cleanup.push_async_callback(self._targets.close)
            cleanup.push_async_callback(self.hub.close)
            probes = await serve_probes(
                self._settings.listen.http,
                self._find_obstacle,
                self._metrics.registry,
                lambda: take_snapshot(self.hub.telemetry),
            )
            self.probe_server = probes
            cleanup.push_async_callback(probes.close)
            if self._readers is not None:
                figures = await serve_figures(self._settings.listen.figures, self._read_figures, self._readers.admit)
                cleanup.push_async_callback(figures.close)
            heed_signals(stop)
            cleanup.callback(asyncio.create_task(self._health.run()).cancel)
            if self._standby is not None:
                cleanup.callback(asyncio.create_task(self._standby.lead(stop)).cancel)
                if not await run_unless_stopped(self._standby.wait(), stop):
                    return
            cleanup.callback(asyncio.create_task(self._ownership.run()).cancel)
            if not await run_unless_stopped(self._prepare(), stop):
                return
            tls = self._certificates.current if self._certificates is not None else None
            self.hub_server = await serve(
                self.hub, self._settings.listen.hub.text(), tls=tls, captures=False, beside=self._serve_beside()
            )
            cleanup.push_async_callback(self.hub_server.stop)
            log.info("the hub listens at port %d", self.hub_server.port)
            control = Control(
                self._services,
                self._records,
                self._retention,
                self._later_changes,
                self._analyses,
                self._ownership,
                stop,
            )
            cleanup.push_async_callback(control.close)
            cleanup.push_async_callback(self.policies.close)
            cleanup.push_async_callback(self.hub.history.close)
            await self.policies.start()
            beside = [self._probe.run(), self._retention.run(), self._later_changes.run(), self.hub.history.run()]
            if isinstance(self._certificates, CertificateKeeper):
                beside.append(self._certificates.run())
            if self._settings.sidecar_patience_seconds:
                beside.append(self._make_patience().run())
            for work in beside:
                cleanup.callback(asyncio.create_task(work).cancel)
            self._obstacle, self._health.serves = "", True
            await self._run_kopf(control, stop)
            self._obstacle, self._health.serves = "ending", False

    async def _run_kopf(self, control: Control, stop: asyncio.Event) -> None:
        registry = kopf.OperatorRegistry()
        control.register(registry)
        self.policies.register(registry)
        namespaces = self._settings.namespaces
        tasks = await kopf.spawn_tasks(
            registry=registry, standalone=True, clusterwide=not namespaces, namespaces=namespaces, stop_flag=stop
        )
        heed_signals(stop)  # kopf has set its own, which do not bear a second signal
        await await_first_end(tasks)

    def _make_patience(self) -> Patience:
        return Patience(
            self._cluster,
            self._settings.sidecar_patience_seconds,
            namespaces=self._settings.namespaces,
            serves=self._ownership.serves,
            on_release=self._metrics.released_pods.inc,
            clock=time.time_ns,
        )

    def _find_obstacle(self) -> str:
        if self._leadership is not None and not self._leadership.held.is_set():
            return self._leadership.find_obstacle()
        return self._obstacle or self._health.find_stall()

    async def _prepare(self) -> None:
        """Certificates, and what the store knows of the requests that have not ended: for as long as it takes."""
        tries = 0
        while True:
            try:
                self._ownership.require()
                if trouble := await self._probe.look():
                    raise StoreError(f"the object store cannot be used: {trouble}", retryable=True)
                if isinstance(self._certificates, CertificateKeeper):
                    await self._certificates.ensure()
                await self.hub.restore(await self._list_unfinished())
                return
            except (ApiRefused, ApiUnreachable, StoreError) as error:
                obstacle = f"cannot begin yet: {error}"
                if obstacle != self._obstacle:
                    log.warning("%s", obstacle)
                self._obstacle = obstacle
            await wait_to_try_again(tries)
            tries += 1

    async def _list_unfinished(self) -> list[tuple[str, str]]:
        """(namespace, uid) of each, in the order of their turns."""
        found = []
        for root in [f"{PATH}/namespaces/{n}/" for n in self._settings.namespaces] or [f"{PATH}/"]:
            for body in (await self._cluster.list(f"{root}{PLURAL}"))[0]:
                if not is_finished(body.get("status")) and self._ownership.serves(body):
                    found.append(body["metadata"])
        return [(metadata["namespace"], metadata["uid"]) for metadata in sorted(found, key=find_turn)]

    def _make_analyses_service(self, store: Store, authenticator: Authenticator | None) -> AnalysesService | None:
        if self._analyses is None or authenticator is None:
            return None
        return AnalysesService(
            self._cluster, self._settings.namespace, store, authenticator, self._analyses.find_capture
        )

    def _serve_beside(self) -> list[Callable[[grpc.aio.Server], None]]:
        service = self._analyses_service
        return [] if service is None else [lambda server: add_AnalysesServicer_to_server(service, server)]


def _time(analyses: AnalyzerJobs, metrics: Metrics) -> Analyze:
    async def analyze(order: AnalysisOrder) -> None:
        with metrics.analyses.time():
            await analyses.analyze(order)

    return analyze
