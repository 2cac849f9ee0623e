"""The last day of one workload: Prometheus' where there is one, else what the hub stored.

Guarantees: a Prometheus that does not answer, or knows nothing of the workload, costs nothing but its part: the store's
day is shown; the answer says whose it is. What policies did about the workload in that time is beside it.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from fleetprof_api.telemetry.history import POINTS, STEP_NS
from fleetprof_api.telemetry.measures import IN_HISTORY, MEASURES
from fleetprof_store.base import Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.telemetry import DaySeries, TelemetryDay
from fleetprof_webui.policies.reading import find_job_actions
from fleetprof_webui.telemetry.prometheus import Prometheus, PrometheusFailed
from fleetprof_webui.telemetry.stored_day import find_stored_day

log = logging.getLogger(__name__)

_HELP: Final = {measure.name: measure.help for measure in MEASURES}


def find_day(store: Store, prometheus: Prometheus | None, namespace: str, kind: str, name: str) -> TelemetryDay:
    """`kind` "" is any. Raises StoreError."""
    kept = _ask(prometheus, namespace, kind, name)
    source: Literal["prometheus", "store"] = "prometheus" if kept else "store"
    kept = kept or find_stored_day(store, namespace, kind, name)
    if kept is None:
        return TelemetryDay(end_unix_ns=None, step_ns=STEP_NS, source=source, series=[], actions=[])
    end_unix_ns, values = kept
    return TelemetryDay(
        end_unix_ns=unix_ns(end_unix_ns),
        step_ns=STEP_NS,
        source=source,
        series=[
            DaySeries(measure=measure, help=_HELP[measure], values=list(values[measure]))
            for measure in IN_HISTORY
            if any(value is not None for value in values.get(measure, ()))
        ],
        actions=find_job_actions(store, namespace, kind, name, end_unix_ns - POINTS * STEP_NS),
    )


def _ask(
    prometheus: Prometheus | None, namespace: str, kind: str, name: str
) -> tuple[int, Mapping[str, Sequence[float | None]]] | None:
    """(end of the last step, points by measure); None where Prometheus does not answer, or knows nothing of it."""
    if prometheus is None:
        return None
    end_unix_ns = (time.time_ns() // STEP_NS + 1) * STEP_NS
    try:
        found = prometheus.find_day(namespace, kind, name, end_unix_ns)
    except PrometheusFailed as error:
        log.warning("the day of %s/%s comes from the store, because Prometheus failed: %s", namespace, name, error)
        return None
    return (end_unix_ns, found) if found else None
