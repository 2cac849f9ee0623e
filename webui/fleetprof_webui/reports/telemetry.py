"""The last day of telemetry, as the hub stores it for each namespace.

Guarantees: read within limits; what is not there, or cannot be read, is a day without series.
"""

import logging
from typing import Final

from fleetprof_api import keys
from fleetprof_api.telemetry.history import STEP_NS, InvalidHistory, read_day
from fleetprof_api.telemetry.measures import IN_HISTORY, MEASURES
from fleetprof_store.base import NotFound, Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.telemetry import DaySeries, TelemetryDay

log = logging.getLogger(__name__)

_MOST_BYTES: Final = 16 << 20
_HELP: Final = {measure.name: measure.help for measure in MEASURES}
_NOTHING: Final = TelemetryDay(end_unix_ns=None, step_ns=STEP_NS, series=[])


def find_day(store: Store, namespace: str, kind: str, name: str) -> TelemetryDay:
    """That of one workload; `kind` "" is any. Raises StoreError."""
    try:
        with store.open(keys.telemetry_day_key(namespace)) as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidHistory(f"it has more than {_MOST_BYTES} bytes")
        day = read_day(data)
    except NotFound:
        return _NOTHING
    except InvalidHistory as error:
        log.warning("the telemetry of %s: %s", namespace, error)
        return _NOTHING
    found = next((one for one in day.workloads if one.name == name and kind in ("", one.kind)), None)
    if found is None:
        return _NOTHING
    return TelemetryDay(
        end_unix_ns=unix_ns(day.end_unix_ns),
        step_ns=day.step_ns,
        series=[
            DaySeries(measure=measure, help=_HELP[measure], values=found.values[measure])
            for measure in IN_HISTORY
            if any(value is not None for value in found.values.get(measure, ()))
        ],
    )
