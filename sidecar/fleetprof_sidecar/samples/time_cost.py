"""What one recording did to a rank's training iterations, from the ends of its optimizer steps.

Guarantees: pure; no figure without at least one whole iteration behind it. The step that ends a window is the one in
whose hook Kineto stops; what comes after it until the trace is there is the stall, not the recording.
"""

from collections.abc import Mapping
from statistics import median_low

from fleetprof_api.ledger import TimeCost

from fleetprof_sidecar.capture.process_capture import Terms


def measure_time(ends_unix_ns: Mapping[int, int], terms: Terms, armed_unix_ns: int, written_unix_ns: int) -> TimeCost:
    """The cost, where `ends_unix_ns` has the end of each step that was seen; all zero for a window by time."""
    first, last = terms.first_step, terms.last_step
    if first is None or last is None:
        return TimeCost()
    span = terms.steps_per_iteration
    before: list[int] = []
    recorded: list[int] = []
    settling: list[int] = []
    after = 0
    for step, end in ends_unix_ns.items():
        begin = ends_unix_ns.get(step - span)
        if begin is None or end <= begin or (step - last) % span:
            continue
        if end <= armed_unix_ns:
            before.append(end - begin)
        elif first <= step <= last:
            recorded.append(end - begin)
        elif step > last:
            after += end > written_unix_ns
            if begin < written_unix_ns:
                settling.append(end - begin)
    usual = median_low(before) if before else terms.iteration_ns
    return TimeCost(
        iteration_before_ns=usual,
        longest_before_ns=max(before, default=usual),
        iteration_ns=median_low(recorded) if recorded else 0,
        stall_ns=max(0, max(settling, default=0) - usual) if usual else 0,
        iterations_after=after,
    )
