"""The limits that the sidecar itself sets: an order to ask of its trainers, whoever sends it.

The hub refuses what goes beyond the limits of a request; one that is imitated, taken over or of another version may
not.

Guarantees: pure; an order that passes is within every limit of `fleetprof_api.limits`; a refusal names field, value and
limit.
"""

from collections.abc import Iterable
from typing import Final

from fleetprof_api.choices import Activity, Collect
from fleetprof_api.errors import FleetprofError
from fleetprof_api.hub import hub_pb2
from fleetprof_api.kernel_class import MOST_KERNEL_CLASSES
from fleetprof_api.limits import (
    LONGEST_DEADLINE_NS,
    LONGEST_WINDOW_NS,
    MOST_ITERATIONS,
    MOST_SLOWDOWN_PERCENT,
    MOST_TRACE_BYTES,
    MOST_WARMUP_ITERATIONS,
)

from fleetprof_sidecar.capture.process_capture import ProcessCapture
from fleetprof_sidecar.processes.index import MAX_PROCESSES

# Captures that have not ended; each process has one slot, and what is written waits for the store within the spool.
MOST_CAPTURES: Final = 16
# The hub's clock and ours.
_CLOCKS_NS: Final = 600_000_000_000
_LAST_STEP: Final = 2**31
_LONGEST_RANGE: Final = 200


class OverLimit(FleetprofError, ValueError):
    """The order asks for more than is allowed; the message names the field, the value and the limit."""


def check_limits(arm: hub_pb2.Arm, now_unix_ns: int) -> None:
    """Raises OverLimit."""
    window = arm.window
    for field, value, most in (
        ("window.iterations", window.iterations, MOST_ITERATIONS),
        ("window.warmup_iterations", window.warmup_iterations, MOST_WARMUP_ITERATIONS),
        ("window.duration_ns", window.duration_ns, LONGEST_WINDOW_NS),
        ("asked_iterations", arm.asked_iterations, MOST_ITERATIONS),
        ("first_step", arm.first_step, _LAST_STEP),
        ("max_trace_bytes", arm.max_trace_bytes, MOST_TRACE_BYTES),
        ("max_slowdown_percent", arm.max_slowdown_percent, MOST_SLOWDOWN_PERCENT),
        ("give_up_unix_ns", arm.give_up_unix_ns, now_unix_ns + LONGEST_DEADLINE_NS + _CLOCKS_NS),
        ("start_unix_ns", arm.start_unix_ns, now_unix_ns + LONGEST_DEADLINE_NS + _CLOCKS_NS),
        ("orders", len(arm.orders), MAX_PROCESSES),
        ("collect", len(arm.collect), len(Collect)),
        ("activities", len(arm.activities), len(Activity)),
        ("kernel_classes", len(arm.kernel_classes), MOST_KERNEL_CLASSES),
        ("iteration_range's length", len(arm.iteration_range), _LONGEST_RANGE),
    ):
        if not 0 <= value <= most:
            raise OverLimit(f"{field} {value}: must be from 0 to {most}, the sidecar's own limit")
    if not arm.iteration_range.isprintable():
        raise OverLimit("iteration_range: must be printable")
    for field, choices, given in (("collect", Collect, arm.collect), ("activities", Activity, arm.activities)):
        for option in given:
            if option not in frozenset(choices):
                raise OverLimit(f"{field} {option[:40]!r}: must be one of {', '.join(choices)}")


def check_room(arm: hub_pb2.Arm, captures: Iterable[ProcessCapture]) -> None:
    """Raises OverLimit where as many captures as are allowed have not ended."""
    unfinished = {capture.terms.capture_id for capture in captures if not capture.is_final} - {arm.capture_id}
    if len(unfinished) >= MOST_CAPTURES:
        raise OverLimit(f"{len(unfinished)} captures have not ended here: at most {MOST_CAPTURES} at once")
