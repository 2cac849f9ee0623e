"""Numbers as people read them, the same in the terminal and on the page.

Guarantees: a unit with every number; three significant digits; thin wording; nothing of the report is changed.
"""

from typing import Final

from fleetprof_api.report.report import TimeBreakdown

PARTS: Final = (
    ("compute", "compute"),
    ("exposed_communication", "exposed communication"),
    ("exposed_memory", "exposed memory"),
    ("idle", "idle"),
    ("unrecorded", "not recorded"),
)
"""The parts that add up to the span: (field of TimeBreakdown, words)."""

_UNITS: Final = (
    (86_400 * 10**9, "d"),
    (3600 * 10**9, "h"),
    (60 * 10**9, "min"),
    (10**9, "s"),
    (10**6, "ms"),
    (1000, "µs"),
)
_ENERGIES: Final = ((10**12, "MJ"), (10**9, "kJ"), (10**6, "J"), (10**3, "mJ"))
_MICROJOULES: Final = {"mJ": 1000, "µJ": 1}
_OPERATIONS: Final = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))
_SIZES: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def capital(sentence: str) -> str:
    """With its first letter in upper case."""
    return f"{sentence[:1].upper()}{sentence[1:]}"


def duration(nanoseconds: int | None) -> str:
    """`12.3 ms`; a dash for None."""
    if nanoseconds is None:
        return "–"
    for size, unit in _UNITS:
        if abs(nanoseconds) >= size:
            return f"{_three_digits(nanoseconds / size)} {unit}"
    return f"{nanoseconds} ns"


def round_duration(nanoseconds: float) -> str:
    """`250 ms`: a round number of an axis, without trailing zeros."""
    for size, unit in _UNITS:
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.4g} ns" if nanoseconds else "0"


def size(count: float) -> str:
    """`12.3 MB`, decimal units."""
    for limit, unit in _SIZES:
        if abs(count) >= limit:
            return f"{_three_digits(count / limit)} {unit}"
    return f"{count:.0f} B"


def flops(count: float) -> str:
    """`12.3 TFLOP`: floating-point operations."""
    for limit, unit in _OPERATIONS:
        if abs(count) >= limit:
            return f"{_three_digits(count / limit)} {unit}"
    return f"{count:.0f} FLOP"


def amount(value: int, unit: str) -> str:
    """A quantity of the report in `unit`: ns as `12.3 ms`, mJ and µJ as `12.3 J`."""
    if unit == "ns":
        return duration(value)
    microjoules = value * _MICROJOULES[unit]
    for limit, name in _ENERGIES:
        if abs(microjoules) >= limit and name != unit:
            return f"{_three_digits(microjoules / limit)} {name}"
    return f"{value} {unit}"


def round_size(count: float) -> str:
    """`250 MB`: a round number of an axis, without trailing zeros."""
    for limit, unit in _SIZES:
        if abs(count) >= limit:
            return f"{count / limit:.4g} {unit}"
    return f"{count:.4g} B"


def share(part: int, whole: int) -> str:
    """`12.3 %` of whole; a dash when there is no whole."""
    return "–" if whole <= 0 else percent(100 * part / whole)


def percent(value: float) -> str:
    """`12.3 %`, one decimal."""
    return f"{value:.1f} %"


def change(ratio: float | None) -> str:
    """A ratio as change: 1.034 is `+3.4 %`; a dash for None."""
    return "–" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def rank_name(rank: int | None) -> str:
    """`3`, or `?` for a trace that does not say."""
    return "?" if rank is None else str(rank)


def parts_of(time_ns: TimeBreakdown) -> list[tuple[str, str, int]]:
    """(field, words, ns) of the parts."""
    return [(name, words, getattr(time_ns, name)) for name, words in PARTS]


def plain(text: str, limit: int = 200) -> str:
    """Text of a trace or request made safe for a terminal: no control characters, at most `limit` characters."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    return f"{value:.2f}" if magnitude < 9.995 else f"{value:.1f}" if magnitude < 99.95 else f"{value:.0f}"
