"""Numbers as people read them, the same in every command, message and report, and on the web UI's pages (src/units).

Guarantees: pure; a unit with every number; three significant digits.
"""

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ((10**9, "s"), (10**6, "ms"), (1000, "µs"))
_MINUTES_FROM_NS: Final = 120 * 10**9
_DAYS_FROM_HOURS: Final = 48
_ENERGIES: Final = ((10**12, "MJ"), (10**9, "kJ"), (10**6, "J"), (10**3, "mJ"))
_MICROJOULES: Final = {"mJ": 1000, "µJ": 1}
_OPERATIONS: Final = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))
_SIZES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_RATES: Final = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))


def duration(nanoseconds: int | None) -> str:
    """`12.3 ms`; a dash for None."""
    if nanoseconds is None:
        return "–"
    if abs(nanoseconds) >= _MINUTES_FROM_NS:
        return _minutes(nanoseconds)
    for size, unit in _UNITS:
        if abs(nanoseconds) >= size:
            return f"{_three_digits(nanoseconds / size)} {unit}"
    return f"{nanoseconds} ns"


def _minutes(nanoseconds: int) -> str:
    """`2 min 30 s`, `3 h 5 min`, `4 d 2 h`."""
    sign = "-" if nanoseconds < 0 else ""
    minutes, seconds = divmod(round(abs(nanoseconds) / 1e9), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= _DAYS_FROM_HOURS:
        return f"{sign}{hours // 24} d {hours % 24} h"
    return f"{sign}{hours} h {minutes} min" if hours else f"{sign}{minutes} min {seconds} s"


def size(count: float) -> str:
    """`12.3 MiB`, binary units."""
    return _scaled(count, _SIZES, "byte" if round(count) == 1 else "bytes")


def rate(bytes_per_s: float) -> str:
    """`12.3 GB/s`, decimal units, as vendors state links."""
    return _scaled(bytes_per_s, _RATES, "B/s")


def _scaled(value: float, units: Sequence[tuple[float, str]], smallest: str) -> str:
    for limit, unit in units:
        if abs(value) >= limit:
            return f"{_three_digits(value / limit)} {unit}"
    return f"{value:.0f} {smallest}"


def flops(count: float) -> str:
    """`12.3 TFLOP`: floating-point operations."""
    return _scaled(count, _OPERATIONS, "FLOP")


def amount(value: int, unit: str) -> str:
    """A quantity of the report in `unit`: ns as `12.3 ms`, mJ and µJ as `12.3 J`."""
    if unit == "ns":
        return duration(value)
    microjoules = value * _MICROJOULES[unit]
    for limit, name in _ENERGIES:
        if abs(microjoules) >= limit and name != unit:
            return f"{_three_digits(microjoules / limit)} {name}"
    return f"{value} {unit}"


def share(part: int, whole: int) -> str:
    """`12.3 %` of whole; a dash when there is no whole."""
    return "–" if whole <= 0 else percent(100 * part / whole)


def percent(value: float) -> str:
    """`12.3 %`, one decimal."""
    return f"{value:.1f} %"


def change(ratio: float | None) -> str:
    """A ratio as change: 1.034 is `+3.4 %`; a dash for None."""
    return "–" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    return f"{value:.2f}" if magnitude < 9.995 else f"{value:.1f}" if magnitude < 99.95 else f"{value:.0f}"
