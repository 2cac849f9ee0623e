"""How much longer a device took by its slowness."""

import numpy as np
from fleetprof_analyzer.job.stragglers.causes.devices import time_by_slowness


def test_a_device_without_work_took_no_longer() -> None:
    busy_ns, slowness = np.array([125.0, 100.0, 0.0]), np.array([0.25, 0.0, -1.0])
    with np.errstate(all="raise"):
        assert time_by_slowness(busy_ns, slowness).tolist() == [25.0, 0.0, 0.0]
