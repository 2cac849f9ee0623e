"""What to try against communication that nothing hides: only what sizes and times in the report speak for.

Guarantees: pure; no advice where it is not known whether ranks wait or send, or on CPU-only ranks, where a transfer
cannot be told from the wait for a core.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.report_tables import CommunicationStatistics

_LEAST_TRANSFER: Final = 0.5  # of the time in collectives; else it is waiting
_SMALL_BYTES: Final = 1 << 20  # a message below it takes about as long as an empty one (docs/measures.md#findings)
_LEAST_KNOWN: Final = 0.5  # of the time in collectives whose sizes are known
_BUCKETED: Final = frozenset(("all_reduce", "reduce_scatter", "all_gather"))


def explain_exposed(
    transfer_share: float | None, rows: Sequence[CommunicationStatistics], *, on_host: bool
) -> tuple[str, str]:
    """(what it is, what to try); `transfer_share` None: not known, as of a single rank."""
    exposed = "no computing hides the communication"
    if transfer_share is None:
        return exposed, "a capture of all ranks: one rank's trace does not tell sending from waiting"
    if transfer_share < _LEAST_TRANSFER:
        return (
            "the ranks wait for each other in their collectives, now for one and now for another",
            "work and pauses that are even over the ranks; what is sent takes the smaller part of that time",
        )
    if on_host:
        return exposed, ""
    mean_bytes = _mean_bytes(rows)
    if mean_bytes is None:
        return exposed, "overlap with the backward pass, gradient accumulation, another sharding"
    if mean_bytes < _SMALL_BYTES:
        size = f"{mean_bytes / 1024:,.0f} KiB"
        return f"{exposed}, of {size} a call on average", "fewer and larger messages (larger buckets)"
    size = f"{mean_bytes / (1 << 20):,.0f} MiB"
    return (
        f"{exposed}, of {size} a call on average",
        "fewer bytes (gradient accumulation, another sharding, a smaller data type) or overlap with the backward pass",
    )


def _mean_bytes(rows: Sequence[CommunicationStatistics]) -> float | None:
    """Of the collectives that buckets or units fill; None where most of their time has no size."""
    bucketed = [row for row in rows if row.kind in _BUCKETED]
    known = [(row.message_bytes, row.count, row.total_ns) for row in bucketed if row.message_bytes is not None]
    whole, calls = sum(row.total_ns for row in rows), sum(count for _, count, _ in known)
    if not calls or sum(total for _, _, total in known) < _LEAST_KNOWN * whole:
        return None
    return sum(size * count for size, count, _ in known) / calls
