"""The time that a device's slowness adds, and slowness that comes and goes."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.devices import comes_and_goes, time_by_slowness
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern


def test_a_device_without_work_took_no_longer() -> None:
    busy_ns, slowness = np.array([125.0, 100.0, 0.0]), np.array([0.25, 0.0, -1.0])
    with np.errstate(all="raise"):
        assert time_by_slowness(busy_ns, slowness).tolist() == [25.0, 0.0, 0.0]


CLOCKS = [0.3, 0.3, 0.01, 0.3, 0.02, 0.3, 0.3, 0.01, 0.3, 0.3]
OF_CHANCE = [0.5, 0.1, 0.3, 0.5, -0.1, 0.4, 0.0, 0.5, 0.3, 0.4]


@pytest.mark.parametrize(("slowness", "noise", "throttled"), [
    (CLOCKS, 0.0, True), (CLOCKS, 0.01, True), (CLOCKS, 0.2, False), (OF_CHANCE, 0.0, True), (OF_CHANCE, 0.2, False),
])  # fmt: skip
def test_fast_iterations_that_moving_work_makes_are_no_clock(
    slowness: list[float], noise: float, throttled: bool
) -> None:
    late = Candidate(0, LatePattern.PERSISTENT, 0.3, np.array(slowness) > 0.2)
    assert comes_and_goes(np.array(slowness), late, beside_peers=True, noise=noise) == throttled
