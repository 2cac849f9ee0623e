"""Thins samples of a device or host to what a chart needs.

Guarantees: at most `POINTS` points per series, each the mean of its time bucket; counters become rates; reasons of
throttling become shares of the time; what a source never gave, and a reason that never was, is no series.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.report import Series
from fleetprof_api.samples import DeviceColumns, HostColumns
from fleetprof_api.throttling import THROTTLED_BY

POINTS: Final = 80

# (column, name in the report, unit, factor)
_DEVICE: Final = (
    ("utilization_permille", "utilization", "%", 0.1),
    ("sm_active_permille", "sm_active", "%", 0.1),
    ("sm_occupancy_permille", "sm_occupancy", "%", 0.1),
    ("tensor_active_permille", "tensor_active", "%", 0.1),
    ("dram_active_permille", "dram_active", "%", 0.1),
    ("memory_utilization_permille", "memory_utilization", "%", 0.1),
    ("memory_used_bytes", "memory_used", "bytes", 1.0),
    ("power_milliwatts", "power", "W", 1e-3),
    ("temperature_celsius", "temperature", "°C", 1.0),
    ("sm_clock_megahertz", "sm_clock", "MHz", 1.0),
    ("memory_clock_megahertz", "memory_clock", "MHz", 1.0),
)
_HOST: Final = (
    ("cpu_busy_permille", "cpu_busy", "%", 0.1),
    ("memory_available_bytes", "memory_available", "bytes", 1.0),
)
_HOST_COUNTERS: Final = (
    ("network_received_bytes", "network_received", "bytes/s"),
    ("network_sent_bytes", "network_sent", "bytes/s"),
    ("infiniband_received_bytes", "infiniband_received", "bytes/s"),
    ("infiniband_sent_bytes", "infiniband_sent", "bytes/s"),
)


def device_series(columns: DeviceColumns) -> list[Series]:
    """The device's series that hold at least one value."""
    series = [_thin(name, unit, columns.at_unix_ns, getattr(columns, column), f) for column, name, unit, f in _DEVICE]
    for reason, mask in THROTTLED_BY.items():
        shares = [None if one is None else 100.0 * bool(one & mask) for one in columns.throttle_reasons]
        if any(shares):
            series.append(_thin(f"throttled_by_{reason}", "%", columns.at_unix_ns, shares, 1.0))
    return [one for one in series if one is not None]


def host_series(columns: HostColumns) -> list[Series]:
    """The host's series that hold at least one value; byte counters as rates."""
    series = [_thin(name, unit, columns.at_unix_ns, getattr(columns, column), f) for column, name, unit, f in _HOST]
    for column, name, unit in _HOST_COUNTERS:
        rates = _rates(columns.at_unix_ns, getattr(columns, column))
        series.append(_thin(name, unit, columns.at_unix_ns[1:], rates, 1.0))
    return [one for one in series if one is not None]


def _rates(at: Sequence[int], values: Sequence[int | None]) -> list[float | None]:
    """Change per second between neighbours; None where either is missing, or the counter began anew."""
    rates: list[float | None] = []
    for i in range(1, min(len(at), len(values))):
        before, after, elapsed = values[i - 1], values[i], at[i] - at[i - 1]
        if before is None or after is None or after < before or elapsed <= 0:
            rates.append(None)
        else:
            rates.append((after - before) * 1e9 / elapsed)
    return rates


def _thin(name: str, unit: str, at: Sequence[int], values: Sequence[float | None], factor: float) -> Series | None:
    points = sorted((time, value) for time, value in zip(at, values, strict=False) if value is not None)
    if not points:
        return None
    first, last = points[0][0], points[-1][0]
    buckets: dict[int, list[tuple[int, float]]] = {}
    for time, value in points:
        buckets.setdefault((time - first) * POINTS // (last - first + 1), []).append((time, value))
    return Series(
        name=name,
        unit=unit,
        at_unix_ns=[sum(time for time, _ in bucket) // len(bucket) for bucket in buckets.values()],
        values=[round(factor * sum(value for _, value in bucket) / len(bucket), 3) for bucket in buckets.values()],
    )
