"""The effect of one recording on a rank's training iterations, from the ends of its optimizer steps.

Guarantees: pure; no figure without at least one whole iteration behind it; what a recording touched, this one or an
earlier one, is not taken for the job's own doing. The step that ends a window is the one in whose hook Kineto stops;
what comes after it until the trace is there is the stall, not the recording.
"""

from collections.abc import Mapping
from statistics import median_low
from typing import Final

from fleetprof_api.ledger import TimeCost

from fleetprof_sidecar.capture.process_capture import Terms
from fleetprof_sidecar.samples.pace import keep_pace
from fleetprof_sidecar.samples.rhythm import find_precedents

_WARM_UP: Final = 2  # a process's first iterations load and compile: they are no example of the next ones


def measure_time(ends_unix_ns: Mapping[int, int], terms: Terms, written_unix_ns: int) -> TimeCost:
    """The cost, where `ends_unix_ns` has the end of each step that was seen; all zero for a window by time."""
    first, measured, last = terms.first_step, terms.measured_step, terms.last_step
    if first is None or measured is None or last is None:
        return TimeCost()
    span = terms.steps_per_iteration
    before: dict[int, int] = {}
    recorded: list[int] = []
    settling: list[int] = []
    after = 0
    for step, end in ends_unix_ns.items():
        begin = ends_unix_ns.get(step - span)
        if begin is None or end <= begin or (step - last) % span:
            continue
        if step < terms.touched_from_step:
            is_touched = any(one.touches(step, begin, end) for one in terms.recorded)
            if step > _WARM_UP * span and not is_touched:
                before[(first + span - 1 - step) // span] = end - begin
        elif first <= step <= measured:
            recorded.append(end - begin)
        elif step > last:
            after += end > written_unix_ns
            if begin < written_unix_ns:
                settling.append(end - begin)
    before = keep_pace(before)
    usual = median_low(before.values()) if before else terms.iteration_ns
    took = median_low(recorded) if recorded else 0
    own = find_precedents(before, took)
    return TimeCost(
        iteration_before_ns=usual,
        longest_before_ns=own.longest_ns or usual,
        iteration_ns=took,
        stall_ns=max(0, max(settling, default=0) - usual) if usual else 0,
        compared_before=own.compared,
        alike_before=own.alike,
        rhythm_iterations=own.rhythm,
        iterations_after=after,
    )
