"""Iterations have become slower than they were in this run."""

from statistics import median
from typing import Final

from fleetprof_api.policy import IterationTimeDriftTrigger

from fleetprof_operator.policies.triggers.watch import IntervalFigures, LastingWatch

_REFERENCE_INTERVALS: Final = 20  # ten minutes: what a job's own past is measured over


class IterationTimeDriftWatch(LastingWatch[IterationTimeDriftTrigger]):
    """Compares with the job's own best: the least median of ten minutes, so that a slow start is not the measure."""

    def __init__(self, name: str, details: IterationTimeDriftTrigger) -> None:
        super().__init__(name, details, details.for_seconds)
        self._block_ns: list[float] = []
        self._best_ns = 0.0

    def judge(self, interval: IntervalFigures) -> str | None:
        """See LastingWatch."""
        if interval.iteration_ns is None:
            return None
        self._block_ns.append(interval.iteration_ns)
        if len(self._block_ns) == _REFERENCE_INTERVALS:
            found_ns = median(self._block_ns)
            self._best_ns = min(self._best_ns or found_ns, found_ns)
            self._block_ns.clear()
        if not self._best_ns:
            return None
        slower_permille = 1000 * (interval.iteration_ns / self._best_ns - 1)
        if not self.persistence.look(slower_permille > self.details.slower_permille):
            return None
        return (
            f"iterations take {interval.iteration_ns / 1e6:.1f} ms, {slower_permille / 10:.0f} % more than the "
            f"{self._best_ns / 1e6:.1f} ms of this run's best ten minutes, {self.lasting}"
        )
