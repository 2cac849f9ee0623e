"""The GPU that is clearly worse than others with the same work: it takes more energy, or its clock is lower.

Guarantees: pure; it names at most one, and none of fewer than FEWEST_PEERS. Telemetry knows no kernels, so work counts
as equal where the device is of the same model and as much of its memory is in use, in one job. What separates good from
bad GPUs of one model is a few percent (docs/telemetry.md#the-worst-gpu).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

from fleetprof_api.telemetry.figures import WorstGpu

FEWEST_PEERS: Final = 4
JOULES_OVER_PEERS: Final = 1.10
CLOCK_UNDER_PEERS: Final = 0.95
SPREADS: Final = 5
"""How many median absolute deviations it must be away: where all GPUs differ, none is the worst."""
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


def find_worst_gpu(rows: Iterable[GpuRow]) -> WorstGpu | None:
    """The worst of one job's GPUs; None where none stands out."""
    by_device: dict[str, list[GpuRow]] = {}
    for row in rows:
        by_device.setdefault(row.device, []).append(row)
    found: list[tuple[float, WorstGpu]] = []
    for group in by_device.values():
        usual = median(row.memory_used_bytes for row in group)
        peers = [row for row in group if abs(row.memory_used_bytes - usual) <= _SAME_MEMORY * usual]
        joules = _Peers([row.iteration_joules for row in peers])
        clocks = _Peers([row.sm_clock_hertz for row in peers])
        for row in peers:
            more, slower = joules.share(row.iteration_joules), clocks.share(row.sm_clock_hertz)
            wastes = more is not None and more >= JOULES_OVER_PEERS and joules.stands_out(row.iteration_joules)
            lags = slower is not None and slower <= CLOCK_UNDER_PEERS and clocks.stands_out(row.sm_clock_hertz)
            if wastes or lags:
                badness = max(more if wastes and more else 1.0, 1 / slower if lags and slower else 1.0)
                found.append((badness, WorstGpu(row.rank, row.node, row.device, more, slower)))
    return max(found, key=lambda one: (one[0], -one[1].rank))[1] if found else None


class _Peers:
    """One figure of GPUs with the same work."""

    def __init__(self, values: Iterable[float | None]) -> None:
        known = [value for value in values if value is not None]
        self._usual = median(known) if len(known) >= FEWEST_PEERS else 0.0
        self._spread = median(abs(value - self._usual) for value in known) if self._usual else 0.0

    def share(self, value: float | None) -> float | None:
        return value / self._usual if value is not None and self._usual else None

    def stands_out(self, value: float | None) -> bool:
        return value is not None and abs(value - self._usual) > SPREADS * self._spread
