"""The GPU of a running job that is clearly worse than others with the same work.

Guarantees: pure. Telemetry knows no kernels, so work counts as equal where the device is of the same model and as much
of its memory is in use, in one job. The rule is `fleetprof_api.worst_gpu`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

from fleetprof_api.telemetry.figures import WorstGpuFigures
from fleetprof_api.worst_gpu import GpuFigures, find_worst

_SAME_MEMORY: Final = 0.10


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One rank's GPU, smoothed over a minute. None: not known."""

    rank: int
    node: str
    device: str
    memory_used_bytes: float
    iteration_joules: float | None
    sm_clock_hertz: float | None


def find_worst_gpu(rows: Iterable[GpuRow]) -> WorstGpuFigures | None:
    """The worst of one job's GPUs; None where none stands out."""
    by_device: dict[str, list[GpuRow]] = {}
    by_rank: dict[int, GpuRow] = {}
    for row in rows:
        by_device.setdefault(row.device, []).append(row)
        by_rank[row.rank] = row
    groups: list[list[GpuFigures]] = []
    for group in by_device.values():
        usual = median(row.memory_used_bytes for row in group)
        groups.append(
            [
                GpuFigures(row.rank, row.iteration_joules, row.sm_clock_hertz)
                for row in group
                if abs(row.memory_used_bytes - usual) <= _SAME_MEMORY * usual
            ]
        )
    worst = find_worst(groups)
    if worst is None:
        return None
    row = by_rank[worst.rank]
    return WorstGpuFigures(row.rank, row.node, row.device, worst.energy_over_peers, worst.clock_under_peers)
