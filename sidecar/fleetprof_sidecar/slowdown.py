"""Measures how much slower the iterations of a running capture are: the basis of limits.maxSlowdownPercent."""


class SlowdownWatch:
    """Compares steps within the window with `baseline_ns`, the median iteration before it."""

    def __init__(self, baseline_ns: int, first_step: int, steps_per_iteration: int, limit_percent: int) -> None:
        self._baseline_ns = baseline_ns
        self._first_step = first_step
        self._steps_per_iteration = steps_per_iteration
        self._limit_percent = limit_percent
        self._begin: tuple[int, int] | None = None

    def observe(self, step: int, at_unix_ns: int) -> int | None:
        """Takes one step report; the slowdown in percent when it is above the limit, else None.

        Steps before the window are left out; at least one whole iteration must lie between two reports.
        """
        if self._baseline_ns <= 0 or step < self._first_step - 1:
            return None
        if self._begin is None:
            self._begin = (step, at_unix_ns)
            return None
        steps, elapsed_ns = step - self._begin[0], at_unix_ns - self._begin[1]
        if steps < self._steps_per_iteration:
            return None
        iteration_ns = elapsed_ns * self._steps_per_iteration // steps
        percent = 100 * (iteration_ns - self._baseline_ns) // self._baseline_ns
        return percent if percent > self._limit_percent else None
