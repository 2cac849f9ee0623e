"""The last day of one workload, as the hub stored it, and what policies did about the workload in that time."""

from typing import Final

from fleetprof_api.telemetry.history import POINTS, STEP_NS
from fleetprof_api.telemetry.measures import IN_HISTORY, MEASURES
from fleetprof_store.base import Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.telemetry import DaySeries, TelemetryDay
from fleetprof_webui.policies.reading import find_job_actions
from fleetprof_webui.telemetry.stored_day import find_stored_day

_HELP: Final = {measure.name: measure.help for measure in MEASURES}


def find_day(store: Store, namespace: str, kind: str, name: str) -> TelemetryDay:
    """`kind` "" is any. Raises StoreError."""
    kept = find_stored_day(store, namespace, kind, name)
    if kept is None:
        return TelemetryDay(end_unix_ns=None, step_ns=STEP_NS, series=[], actions=[])
    end_unix_ns, values = kept
    return TelemetryDay(
        end_unix_ns=unix_ns(end_unix_ns),
        step_ns=STEP_NS,
        series=[
            DaySeries(measure=measure, help=_HELP[measure], values=list(values[measure]))
            for measure in IN_HISTORY
            if any(value is not None for value in values.get(measure, ()))
        ],
        actions=find_job_actions(store, namespace, kind, name, end_unix_ns - POINTS * STEP_NS),
    )
