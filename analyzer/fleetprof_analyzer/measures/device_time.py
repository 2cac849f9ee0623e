"""All that is measured of one device: its time, and why it was idle.

Guarantees: pure; `idle_ns` adds up to `time_ns.idle` exactly, or is absent where the trace has no host.
"""

from fleetprof_api.report import DeviceTime, IdleCauses, StreamIdle

from fleetprof_analyzer.measures.breakdown import measure_device
from fleetprof_analyzer.measures.devices import DeviceWork
from fleetprof_analyzer.measures.host_activity import HostRows
from fleetprof_analyzer.measures.idle import measure_idle, measure_stream_idle
from fleetprof_analyzer.measures.launch_calls import LaunchCalls
from fleetprof_analyzer.trace import Trace

_PARTS = ("data_loading", "synchronization", "launching", "host", "optimizer", "waiting", "unknown")


def measure_device_time(trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows) -> DeviceTime:
    """One device's entry in the report."""
    time_ns = measure_device(work)
    idle_ns = measure_idle(trace, work, calls, host)
    assert sum(getattr(idle_ns, part) for part in _PARTS) == time_ns.idle, "the causes of idle time do not add up"
    return DeviceTime(
        device=work.device,
        time_ns=time_ns,
        idle_ns=idle_ns,
        stream_idle_ns=measure_stream_idle(work.rows, calls),
        work_count=len(work.rows),
    )


def add_idle(parts: list[IdleCauses]) -> IdleCauses:
    """Sums causes part by part."""
    return IdleCauses(**{name: sum(getattr(part, name) for part in parts) for name in IdleCauses.__struct_fields__})


def add_stream_idle(parts: list[StreamIdle]) -> StreamIdle:
    """Sums HTA's categories part by part."""
    return StreamIdle(**{name: sum(getattr(part, name) for part in parts) for name in StreamIdle.__struct_fields__})
