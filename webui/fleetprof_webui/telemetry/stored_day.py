"""The last day of telemetry, as the hub stores it for each namespace.

Guarantees: read within limits; what is not there, or cannot be read, is None.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from fleetprof_api import keys
from fleetprof_api.telemetry.history import InvalidHistory, NamespaceDay, read_day
from fleetprof_store.base import NotFound, Store

log = logging.getLogger(__name__)

_MOST_BYTES: Final = 16 << 20


def find_stored_day(
    store: Store, namespace: str, kind: str, name: str
) -> tuple[int, Mapping[str, Sequence[float | None]]] | None:
    """(end of the last step, points by measure) of one workload; `kind` "" is any. Raises StoreError."""
    day = read_stored_day(store, namespace)
    workloads = day.workloads if day is not None else []
    found = next((one for one in workloads if one.name == name and kind in ("", one.kind)), None)
    return None if day is None or found is None else (day.end_unix_ns, found.values)


def read_stored_day(store: Store, namespace: str) -> NamespaceDay | None:
    """That of all workloads of a namespace. Raises StoreError."""
    try:
        with store.open(keys.telemetry_day_key(namespace)) as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidHistory(f"it has more than {_MOST_BYTES} bytes")
        return read_day(data)
    except NotFound:
        return None
    except InvalidHistory as error:
        log.warning("the telemetry of %s: %s", namespace, error)
        return None
