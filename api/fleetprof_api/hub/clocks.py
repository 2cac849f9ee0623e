"""Tells if the clock of a sidecar's host fits the hub's: deadlines and starts are points in time that both must mean.

Guarantees: pure.
"""

from typing import Final

_S: Final = 10**9
MOST_OFFSET_NS: Final = 60 * _S
"""A capture is refused beyond this: its order would be over when it comes, or be given up never."""
_UNITS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


def say_clock(host: str, ahead_ns: int) -> str:
    """The fault of a host's clock that is so far ahead of the hub's, for people; empty where it fits."""
    if abs(ahead_ns) <= MOST_OFFSET_NS:
        return ""
    seconds = abs(ahead_ns) // _S
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= 2 * size)
    where = "ahead of" if ahead_ns > 0 else "behind"
    return f"the clock of {host} is {round(seconds / size)} {unit} {where} the hub's; set it (NTP)"
