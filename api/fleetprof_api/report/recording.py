"""The needs of a recording from a rank, before it begins: events, memory of the trainer, length of the trace.

Kineto keeps little while it records and materialises everything when it writes the trace: the peak is then. Measured
on PyTorch 2.13 and 2.15 (CPU; small layers, convolutions with batch norms, transformer blocks):
resident memory above what the process had, bytes per event of the trace; the table has the most of all, rounded up:

    collect      none           Stacks         Shapes         Stacks, Shapes
    2.15         1,480 - 1,670  1,610 - 1,680  3,370 - 4,660  3,010 - 3,040
    2.13         1,540 - 1,670  1,650 - 1,750  3,280 - 4,370  2,810 - 3,160
    trace        250 - 256      265 - 294      361 - 414      346 - 359

Guarantees: pure; hub and sidecar count in the same way.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from fleetprof_api.choices import Activity, Collect
from fleetprof_api.ledger import RecordingCost, RecordingEstimate

MIB: Final = 1 << 20
MOST_EVENTS: Final = 4_000_000
"""Of one rank's window: about 1.2 GB of trace, and 7 to 20 GB of memory while it is written."""
DEFAULT_MAX_TRACE_BYTES: Final = 1 << 30
FLOOR_BYTES: Final = 64 * MIB
"""Left to the job; the agent's memory_guard.FLOOR_BYTES."""
FIXED_BYTES: Final = 32 * MIB
"""What the first recording of a process takes, however short it is."""
BLIND_ITERATION_BYTES: Final = 64 * MIB
"""What one iteration of which nothing is known is taken to need: 20,000 to 35,000 events."""
_MEMORY_PER_EVENT: Final = {(False, False): 1800, (True, False): 1800, (False, True): 5000, (True, True): 3600}
_TRACE_PER_EVENT: Final = {(False, False): 300, (True, False): 310, (False, True): 430, (True, True): 430}
# A measured peak is believed above this growth: below, what the job itself took meanwhile would count for too much.
_TELLING_BYTES: Final = 128 * MIB
# Freed memory that a process still holds is used again unseen: a measured peak may be too small by as much.
_LEAST_MEMORY_PER_EVENT: Final = 1000
_MARGIN: Final = (5, 4)


class Need(msgspec.Struct, kw_only=True, frozen=True):
    """The needs of a window from one rank."""

    events: int
    memory_bytes: int  # at the peak, above what the process has
    trace_bytes: int


def learn(costs: Iterable[RecordingCost]) -> RecordingEstimate | None:
    """The next recording's estimate by others with the same options: the most of any rank. None: nothing is known."""
    known = [cost for cost in costs if cost.iterations > 0 and cost.events > 0]
    if not known:
        return None
    grown = [(cost.memory_peak_bytes - cost.memory_before_bytes, cost.iterations) for cost in known]
    return RecordingEstimate(
        events_per_iteration=max(-(-cost.events // cost.iterations) for cost in known),
        memory_bytes_per_iteration=max((g // i for g, i in grown if g >= _TELLING_BYTES), default=0),
        trace_bytes_per_iteration=max(-(-cost.trace_bytes // cost.iterations) for cost in known),
    )


def need_of(estimate: RecordingEstimate, iterations: int, collect: Collection[str]) -> Need:
    """The needs of a window of so many iterations; at least one is counted."""
    options = (Collect.STACKS in collect, Collect.SHAPES in collect)
    per_iteration = estimate.events_per_iteration
    memory = per_iteration * _MEMORY_PER_EVENT[options]
    if estimate.memory_bytes_per_iteration:
        measured = estimate.memory_bytes_per_iteration * _MARGIN[0] // _MARGIN[1]
        memory = max(measured, per_iteration * _LEAST_MEMORY_PER_EVENT)
    trace = max(estimate.trace_bytes_per_iteration, 0) or per_iteration * _TRACE_PER_EVENT[options]
    count = max(1, iterations)
    return Need(
        events=per_iteration * count,
        memory_bytes=FIXED_BYTES + memory * count if memory else 0,
        trace_bytes=trace * _MARGIN[0] // _MARGIN[1] * count,
    )


def most_memory_bytes(events: int, collect: Collection[str]) -> int:
    """The most memory that recording so many events takes; growth beyond it is the job's own."""
    return FIXED_BYTES + events * _MEMORY_PER_EVENT[Collect.STACKS in collect, Collect.SHAPES in collect]


def covers(known: Collection[str], options: Collection[str]) -> bool:
    """Tells whether a recording with the options `known` says enough of one with `options`: it was not smaller."""
    if Activity.DEVICE in known and Activity.DEVICE not in options:
        return False
    return all(option in known for option in (Collect.STACKS, Collect.SHAPES) if option in options)
