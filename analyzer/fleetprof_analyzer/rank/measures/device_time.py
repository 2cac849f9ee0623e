"""All that is measured of one device: its time, and why it was idle.

Guarantees: pure; `idle_ns` adds up to `time_ns.idle` exactly, of the whole and of each iteration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.idle_causes import IDLE_CAUSES, IdleCauses
from fleetprof_api.report.report import DeviceTime, Iteration, StreamIdle
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.rank.host.track import Track
from fleetprof_analyzer.rank.measures.breakdown import measure_device
from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.host_activity import HostRows, read_host
from fleetprof_analyzer.rank.measures.idle.idle import measure_idle, measure_stream_idle
from fleetprof_analyzer.rank.measures.idle.places import LongGaps, find_idle_places
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace.trace import Trace

# As many as a request may ask for; of more a summary would grow too long.
_MOST_ITERATIONS: Final = 100


@dataclass(frozen=True, slots=True)
class DeviceIdle:
    """The causes of a device's idle time: in all, by stream as HTA has it, in the first iterations; its long gaps."""

    idle_ns: IdleCauses
    stream_idle_ns: StreamIdle
    of_iterations: Sequence[IdleCauses]
    longest: Sequence[LongGaps]


def explain_idle(
    trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls, iterations: Sequence[Iteration]
) -> list[DeviceIdle]:
    """The causes of the idle time of each of a rank's devices."""
    if not works:
        return []
    host = read_host(trace)
    return [_explain_device(trace, work, calls, host, iterations[:_MOST_ITERATIONS]) for work in works]


def _explain_device(
    trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows, iterations: Sequence[Iteration]
) -> DeviceIdle:
    start = np.array([iteration.start_ns for iteration in iterations], np.int64)
    length = np.array([iteration.duration_ns for iteration in iterations], np.int64)
    idle_ns, within, longest = measure_idle(trace, work, calls, host, start, start + length)
    assert _whole(idle_ns) == measure_device(work).idle, "the causes of idle time do not add up"
    return DeviceIdle(idle_ns, measure_stream_idle(work, calls), within, longest)


def list_devices(works: Sequence[DeviceWork], idle: Sequence[DeviceIdle]) -> list[DeviceTime]:
    """The devices' entries in the report; without causes where `idle` is empty."""
    entries = [
        DeviceTime(device=work.device, time_ns=measure_device(work), work_count=len(work.rows)) for work in works
    ]
    if not idle:
        return entries
    return [
        msgspec.structs.replace(entry, idle_ns=one.idle_ns, stream_idle_ns=one.stream_idle_ns)
        for entry, one in zip(entries, idle, strict=True)
    ]


def list_idle_places(
    trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls, idle: Sequence[DeviceIdle], track: Track | None
) -> list[IdlePlace]:
    """The places of all devices' idle time; `track` as in `find_idle_places`."""
    return [
        place
        for work, one in zip(works, idle, strict=True)
        for place in find_idle_places(trace, work, calls, one.longest, track)
    ]


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
    return sum(getattr(idle_ns, part) for part in IDLE_CAUSES)


def add_idle(parts: Sequence[IdleCauses]) -> IdleCauses:
    """Sums causes part by part."""
    return IdleCauses(**{name: sum(getattr(part, name) for part in parts) for name in IdleCauses.__struct_fields__})
