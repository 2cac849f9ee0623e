"""Parts of the operator as an installation's settings want them: bounds of the hub, analyses, export, Leases.

Guarantees: a part that is not set up is None, and nothing of it is imported or begun.
"""

from typing import Final

from fleetprof_operator.analyses.analyses import AnalysisBounds, AnalyzerJobs
from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.metrics import Metrics
from fleetprof_operator.ownership.leadership import Leadership
from fleetprof_operator.ownership.lease import Holder
from fleetprof_operator.settings import Settings

_ANALYSIS_MARGIN_S: Final = 300  # for a Job to be scheduled and noticed, beyond its own deadline


def bound_hub(settings: Settings) -> HubSettings:
    """The hub's bounds as this installation has them. A map and a reduce take two Jobs, and others may come first."""
    turns = 1 + settings.max_captures_per_namespace // settings.max_analyses_per_namespace
    analysis_s = turns * (2 * settings.analysis_deadline_seconds + _ANALYSIS_MARGIN_S)
    return HubSettings(
        namespaces=settings.namespaces,
        telemetry_interval_ns=settings.telemetry_interval_seconds * SECOND_NS,
        max_captures=settings.max_captures,
        max_captures_per_namespace=settings.max_captures_per_namespace,
        bounds=settings.bounds,
        store_authority=settings.store_authority,
        analysis_patience_ns=analysis_s * SECOND_NS,
    )


def make_analyses(settings: Settings, cluster: Cluster, metrics: Metrics) -> AnalyzerJobs | None:
    """None: this installation makes no reports."""
    if settings.analyzer_pod is None:
        return None
    return AnalyzerJobs(
        cluster,
        settings.namespace,
        settings.analyzer_pod,
        AnalysisBounds(
            deadline_s=settings.analysis_deadline_seconds,
            max_parallelism=settings.analysis_max_parallelism,
            max_resources=settings.analysis_max_resources,
            at_a_time_per_namespace=settings.max_analyses_per_namespace,
        ),
        on_write=metrics.writes.labels("job").inc,
    )


def make_leadership(settings: Settings, cluster: Cluster) -> Leadership | None:
    """None: no other may serve, and this process does at once. `cluster`: connections that nothing else waits for."""
    if not settings.leases:
        return None
    return Leadership(cluster, settings.leases, Holder(settings.identity, settings.owner, settings.advertise))
