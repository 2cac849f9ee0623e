"""The peak of each device's memory, where the trace has the allocator's words (docs/measures.md#memory).

Guarantees: pure; of equal peaks the earliest; empty where memory was not recorded.
"""

import numpy as np
from fleetprof_api.report.rank_tables import MemoryPeak

from fleetprof_analyzer.trace.trace import Int64s, MemoryRows


def measure_memory(memory: MemoryRows) -> list[MemoryPeak]:
    """One entry per device with an allocator, in the order of their names."""
    peaks = []
    for number, device in enumerate(memory.devices):
        # File order is not the order of time where several threads allocate.
        mine = np.flatnonzero(memory.device == number)
        mine = mine[np.argsort(memory.at_ns[mine], kind="stable")]
        if len(mine) == 0:
            continue
        at_ns = memory.at_ns[mine]
        allocated, allocated_at = _highest(memory.allocated_bytes[mine], at_ns)
        # An allocator that keeps no free blocks says 0 all the time.
        reserved, reserved_at = _highest(memory.reserved_bytes[mine], at_ns)
        first = int(memory.allocated_bytes[mine[0]])
        peaks.append(
            MemoryPeak(
                device=device,
                allocated_bytes=allocated,
                allocated_at_ns=allocated_at,
                reserved_bytes=reserved or None,
                reserved_at_ns=reserved_at if reserved else None,
                first_allocated_bytes=first if first >= 0 else None,
                events=len(mine),
            )
        )
    return sorted(peaks, key=lambda peak: (len(peak.device), peak.device))


def _highest(values: Int64s, at_ns: Int64s) -> tuple[int | None, int | None]:
    """The largest value and when it was first reached; None where no row says one."""
    highest = int(values.max())
    return (highest, int(at_ns[values.argmax()])) if highest >= 0 else (None, None)
