"""The last day of one workload: Prometheus' where there is one, else what the hub stored.

Guarantees: a Prometheus that does not answer, or knows nothing of the workload, costs nothing but its part: the store's
day is shown; the answer says whose it is.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from fleetprof_api.telemetry.history import STEP_NS
from fleetprof_api.telemetry.measures import IN_HISTORY, MEASURES
from fleetprof_store.base import Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.telemetry import DaySeries, TelemetryDay
from fleetprof_webui.telemetry.prometheus import Prometheus, PrometheusFailed
from fleetprof_webui.telemetry.stored_day import find_stored_day

log = logging.getLogger(__name__)

_HELP: Final = {measure.name: measure.help for measure in MEASURES}


def find_day(store: Store, prometheus: Prometheus | None, namespace: str, kind: str, name: str) -> TelemetryDay:
    """`kind` "" is any. Raises StoreError."""
    if prometheus is not None:
        end_unix_ns = (time.time_ns() // STEP_NS + 1) * STEP_NS
        try:
            found = prometheus.find_day(namespace, kind, name, end_unix_ns)
        except PrometheusFailed as error:
            log.warning("the day of %s/%s comes from the store, because Prometheus failed: %s", namespace, name, error)
        else:
            if found:
                return _make_day(end_unix_ns, found, "prometheus")
    stored = find_stored_day(store, namespace, kind, name)
    if stored is None:
        return TelemetryDay(end_unix_ns=None, step_ns=STEP_NS, source="store", series=[])
    return _make_day(stored[0], stored[1], "store")


def _make_day(
    end_unix_ns: int, values: Mapping[str, Sequence[float | None]], source: Literal["prometheus", "store"]
) -> TelemetryDay:
    return TelemetryDay(
        end_unix_ns=unix_ns(end_unix_ns),
        step_ns=STEP_NS,
        source=source,
        series=[
            DaySeries(measure=measure, help=_HELP[measure], values=list(values[measure]))
            for measure in IN_HISTORY
            if any(value is not None for value in values.get(measure, ()))
        ],
    )
