"""All that is measured of one device: its time, and why it was idle.

Guarantees: pure; `idle_ns` adds up to `time_ns.idle` exactly, of the whole and of each iteration.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.report import DeviceTime, IdleCauses, Iteration

from fleetprof_analyzer.rank.measures.breakdown import measure_device
from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.host_activity import HostRows
from fleetprof_analyzer.rank.measures.idle.causes import CAUSES
from fleetprof_analyzer.rank.measures.idle.idle import measure_idle, measure_stream_idle
from fleetprof_analyzer.rank.measures.idle.places import LongGaps
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace.trace import Trace

# As many as a request may ask for; of more a summary would grow too long.
_MOST_ITERATIONS: Final = 100


def measure_device_time(
    trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows, iterations: Sequence[Iteration]
) -> tuple[DeviceTime, list[IdleCauses], list[LongGaps]]:
    """One device's entry in the report, the causes of its idle time in each of the first iterations, its long gaps."""
    iterations = iterations[:_MOST_ITERATIONS]
    time_ns = measure_device(work)
    start = np.array([iteration.start_ns for iteration in iterations], np.int64)
    length = np.array([iteration.duration_ns for iteration in iterations], np.int64)
    idle_ns, within, longest = measure_idle(trace, work, calls, host, start, start + length)
    assert _whole(idle_ns) == time_ns.idle, "the causes of idle time do not add up"
    device = DeviceTime(
        device=work.device,
        time_ns=time_ns,
        idle_ns=idle_ns,
        stream_idle_ns=measure_stream_idle(work.rows, calls),
        work_count=len(work.rows),
    )
    return device, within, longest


def add_iteration_idle(iterations: Sequence[Iteration], of_devices: Sequence[Sequence[IdleCauses]]) -> list[Iteration]:
    """The iterations, their `time_ns` known, the first of them with the causes of all devices' idle time."""
    if not of_devices:
        return list(iterations)
    found = []
    explained = list(zip(*of_devices, strict=True))
    for iteration, causes in zip(iterations, explained, strict=False):
        idle_ns = add_idle(causes)
        assert iteration.time_ns is not None
        assert _whole(idle_ns) == iteration.time_ns.idle, "the causes of an iteration's idle time do not add up"
        found.append(msgspec.structs.replace(iteration, idle_ns=idle_ns))
    return [*found, *iterations[len(explained) :]]


def _whole(idle_ns: IdleCauses) -> int:
    return sum(getattr(idle_ns, part) for part in CAUSES)


def add_idle(parts: Sequence[IdleCauses]) -> IdleCauses:
    """Sums causes part by part."""
    return IdleCauses(**{name: sum(getattr(part, name) for part in parts) for name in IdleCauses.__struct_fields__})
