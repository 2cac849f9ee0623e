"""A day of telemetry: what the hub keeps in the store for each namespace, and the web UI draws.

Guarantees: a document holds POINTS points of STEP_NS for each measure of `IN_HISTORY`, at most; a measure that nobody
told has no points, and a pause has None, never 0; one that is too large, or not ours, is refused before it is believed.
"""

import gzip
import zlib
from typing import Final

import msgspec

from fleetprof_api.errors import FleetprofError

STEP_NS: Final = 300 * 10**9
POINTS: Final = 288
MOST_BYTES: Final = 64 << 20
"""The largest document that is read, decompressed; 300 workloads with every measure make about 12 MiB."""
_VERSION: Final = 1


class InvalidHistory(FleetprofError, ValueError):
    """Not a history that this fleetprof reads; the message says why."""


class WorkloadDay(msgspec.Struct, frozen=True):
    """One workload: by measure its means over the ranks, the last for the step that ends at `end_unix_ns`."""

    kind: str
    name: str
    values: dict[str, list[float | None]]


class NamespaceDay(msgspec.Struct, frozen=True):
    """The workloads of a namespace that told anything within POINTS steps before `end_unix_ns`."""

    end_unix_ns: int
    workloads: list[WorkloadDay]
    step_ns: int = STEP_NS
    version: int = _VERSION


def write_day(day: NamespaceDay) -> bytes:
    """As it lies in the store: JSON, gzip."""
    return gzip.compress(msgspec.json.encode(day), compresslevel=6, mtime=0)


def read_day(data: bytes) -> NamespaceDay:
    """Raises InvalidHistory."""
    inflater = zlib.decompressobj(31)
    try:
        text = inflater.decompress(data, MOST_BYTES)
        if inflater.unconsumed_tail or not inflater.eof:
            raise InvalidHistory(f"the history is cut off, or larger than {MOST_BYTES} bytes")
        day = msgspec.json.decode(text, type=NamespaceDay)
    except (zlib.error, msgspec.DecodeError) as error:
        raise InvalidHistory(f"the history cannot be read: {error}") from None
    if day.version != _VERSION or day.step_ns != STEP_NS:
        raise InvalidHistory(f"the history has version {day.version}; this fleetprof reads {_VERSION}")
    if any(len(points) > POINTS for workload in day.workloads for points in workload.values.values()):
        raise InvalidHistory(f"the history has more than {POINTS} points")
    return day
