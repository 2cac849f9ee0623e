"""The job uses little of its GPUs; without a GPU it makes few iterations beside its own best."""

from fleetprof_api.policy import LowUtilizationTrigger

from fleetprof_operator.policies.triggers.watch import IntervalFigures, LastingWatch


class LowUtilizationWatch(LastingWatch[LowUtilizationTrigger]):
    """Compares the mean activity of the GPUs, or else the iteration rate, with `below_permille`."""

    def __init__(self, name: str, details: LowUtilizationTrigger) -> None:
        super().__init__(name, details, details.for_seconds)
        self._best = (0.0, 0.0)  # the two highest rates; the second one is no outlier

    def judge(self, interval: IntervalFigures) -> str | None:
        """See LastingWatch."""
        if interval.activity_permille is not None:
            used, of = interval.activity_permille, "of the GPUs' activity"
        elif interval.rate is not None:
            high, second = self._best
            self._best = (max(high, interval.rate), max(second, min(high, interval.rate)))
            if not self._best[1]:
                return None
            used, of = 1000 * interval.rate / self._best[1], "of the job's own best iteration rate"
        else:
            return None
        below_permille = self.details.below_permille
        if not self.persistence.look(used < below_permille):
            return None
        return f"{used / 10:.0f} % {of}, below {below_permille / 10:.0f} % {self.lasting}"
