"""What to try against communication that nothing hides: only what its facts speak for.

Guarantees: pure; no advice where nothing speaks for any.
"""

from typing import Final

from fleetprof_analyzer.job.findings.found import ExposedCommunication

_SMALL_BYTES: Final = 1 << 20  # a message below it takes about as long as an empty one (docs/measures.md#findings)
_EXPOSED: Final = "no computation hides the communication"


def say_exposed_communication(found: ExposedCommunication) -> tuple[str, str]:
    """(what it is, what to try)."""
    match found.spent:
        case "not_known":
            return _EXPOSED, "capture all ranks: one rank's trace does not tell sending from waiting"
        case "waiting":
            return (
                "the ranks wait for each other in their collectives, now for one and now for another",
                "make work and pauses even over the ranks; sending takes the smaller part of that time",
            )
        case "on_host":
            return _EXPOSED, ""
        case "sending":
            return _say_sending(found.mean_bytes)


def _say_sending(mean_bytes: float | None) -> tuple[str, str]:
    if mean_bytes is None:
        return _EXPOSED, "overlap with the backward pass, gradient accumulation, another sharding"
    if mean_bytes < _SMALL_BYTES:
        size = f"{mean_bytes / 1024:,.0f} KiB"
        return f"{_EXPOSED}, of {size} a call on average", "fewer and larger messages (larger buckets)"
    size = f"{mean_bytes / (1 << 20):,.0f} MiB"
    return (
        f"{_EXPOSED}, of {size} a call on average",
        "fewer bytes (gradient accumulation, another sharding, a smaller data type) or overlap with the backward pass",
    )
