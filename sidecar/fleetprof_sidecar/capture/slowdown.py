"""Measures how much slower the iterations of a running capture are: the basis of limits.maxSlowdownPercent.

Every capture has a limit unless it was switched off, so what others do to the job must not look like ours. Two
measurements in a row have to be above the limit, because a checkpoint, an evaluation or a data loader that waits fills
one. All measurements of five seconds have to be above it, because another program takes the cores for a few while it
starts (in bench/real that stopped captures of ordinary jobs). What they are compared with has the pauses that the job
makes by itself: a collection of 2 s in every fourth iteration of 20 ms makes each span of five seconds slow.

Guarantees: pure; a capture without a limit, without the agent or by time is never judged, nor is what comes after its
window: stopping would end nothing then.
"""

from collections.abc import Hashable

from fleetprof_sidecar.capture.process_capture import Terms
from fleetprof_sidecar.processes.views import StepView

LEAST_MEASUREMENTS = 2
LEAST_SLOW_NS = 5 * 10**9


class SlowdownWatch:
    """Compares the steps from `first_step` to `last_step` with `baseline_ns`, what an iteration took before them."""

    def __init__(
        self, baseline_ns: int, first_step: int, last_step: int, steps_per_iteration: int, limit_percent: int
    ) -> None:
        self._baseline_ns = baseline_ns
        self._first_step = first_step
        self._last_step = last_step
        self._steps_per_iteration = steps_per_iteration
        self._limit_percent = limit_percent
        self._latest: tuple[int, int] | None = None
        # The latest measurements in a row that are above the limit.
        self._slow: list[int] = []
        self._slow_since_unix_ns = 0

    def observe(self, step: int, at_unix_ns: int) -> int | None:
        """Takes one step report; the slowdown in percent once two measurements in a row and all of five seconds are
        above the limit (the least of them), else None.

        Steps outside the window are left out; a measurement is of at least one whole iteration between two reports.
        """
        if self._baseline_ns <= 0 or not self._first_step - 1 <= step <= self._last_step:
            return None
        if self._latest is None:
            self._latest = (step, at_unix_ns)
            return None
        steps, elapsed_ns = step - self._latest[0], at_unix_ns - self._latest[1]
        if steps < self._steps_per_iteration:
            return None
        began_unix_ns, self._latest = self._latest[1], (step, at_unix_ns)
        iteration_ns = elapsed_ns * self._steps_per_iteration // steps
        percent = 100 * (iteration_ns - self._baseline_ns) // self._baseline_ns
        if percent <= self._limit_percent:
            self._slow.clear()
            return None
        if not self._slow:
            self._slow_since_unix_ns = began_unix_ns
        self._slow.append(percent)
        is_long = at_unix_ns - self._slow_since_unix_ns >= LEAST_SLOW_NS
        return min(self._slow) if is_long and len(self._slow) >= LEAST_MEASUREMENTS else None


class SlowdownWatches:
    """One watch per running capture that has a limit."""

    def __init__(self) -> None:
        self._watches: dict[Hashable, SlowdownWatch] = {}

    def judge(self, key: Hashable, terms: Terms, step: StepView) -> str:
        """Takes a step report of a running capture; why it must stop, "" while it may go on."""
        limit = terms.max_slowdown_percent
        if not limit or not terms.has_agent or terms.first_step is None or terms.measured_step is None:
            return ""
        if key not in self._watches:
            baseline_ns = max(terms.iteration_ns, terms.mean_iteration_ns)
            self._watches[key] = SlowdownWatch(
                baseline_ns, terms.first_step, terms.measured_step, terms.steps_per_iteration, limit
            )
        percent = self._watches[key].observe(step.step, step.at_unix_ns)
        if percent is None:
            return ""
        return f"iterations were {percent} % slower than before, limits.maxSlowdownPercent allows {limit}"

    def forget(self, key: Hashable) -> None:
        """The capture is over."""
        self._watches.pop(key, None)
