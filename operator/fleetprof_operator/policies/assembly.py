"""The parts of the policies, put together for one operator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from prometheus_client import CollectorRegistry

from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import ServerTls
from fleetprof_operator.hub.submission import UnknownCapture
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.metrics import Metrics
from fleetprof_operator.policies.captures import PolicyCaptures
from fleetprof_operator.policies.control import PolicyControl
from fleetprof_operator.policies.engine import Engine
from fleetprof_operator.policies.exemption import Exemptions
from fleetprof_operator.policies.notifications.notification import Notifier
from fleetprof_operator.policies.notifications.report_alert import ReportAlerts
from fleetprof_operator.policies.policy_metrics import PolicyMetrics
from fleetprof_operator.policies.receiver import AlertReceiver
from fleetprof_operator.policies.stored_policies import PolicyWriter
from fleetprof_operator.policies.triggers.figures import HubFigures
from fleetprof_operator.profilerequests.requesters import Requesters
from fleetprof_operator.settings import Settings


@dataclass(frozen=True, slots=True)
class Policies:
    """The part of policies that an operator needs."""

    engine: Engine
    exemptions: Exemptions
    settings: Settings

    @classmethod
    def assemble(cls, settings: Settings, cluster: Cluster, hub: Hub, metrics: Metrics, requesters: Requesters) -> Self:
        """Over the hub's sidecars; nothing begins yet."""
        figures = HubFigures(
            hub.sidecars, lambda job, measure: hub.telemetry.measure((job.namespace, job.kind, job.name), measure)
        )
        exemptions = Exemptions(cluster)
        captures = PolicyCaptures(
            cluster,
            figures,
            Notifier(settings.notifications),
            ReportAlerts(settings.notifications),
            find_author=requesters.find_author,
            count_bytes=lambda uid: _count_bytes(hub, uid),
            on_write=lambda kind: metrics.writes.labels(kind).inc(),
        )
        stored = PolicyWriter(hub.put)
        engine = Engine(figures, exemptions, captures, stored, on_firing=metrics.note_firing)
        return cls(engine, exemptions, settings)

    def register(self, registry: CollectorRegistry) -> None:
        """Adds their own metrics."""
        registry.register(PolicyMetrics(self.engine, self.exemptions))

    def make_control(
        self, serves: Callable[[Mapping[str, Any]], bool], certificate: Callable[[], ServerTls] | None
    ) -> PolicyControl:
        """The part that begins and ends them. `serves`: whether an object is this release's."""
        token = self.settings.alerts_token_file
        receiver = AlertReceiver(token, self.engine.take_alerts, self.settings.namespace) if token is not None else None
        return PolicyControl(self.engine, serves, receiver, self.settings.listen.alerts, certificate)


def _count_bytes(hub: Hub, uid: str) -> int | None:
    try:
        _, capture = hub.look_up(uid)
    except UnknownCapture:
        return None
    return sum(event.trace_bytes for event in capture.ranks)
