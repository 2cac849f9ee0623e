"""A host that launches far ahead of its device is held up by the driver: no own time, wherever an operation lies."""

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.chain.host_chain import follow_host

QUEUED, HELD_NS, LAUNCH_NS = 600, 5_000_000, 10_000
NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize("after_hold", [False, True], ids=["launched before it was held up", "launched after"])
def test_the_time_that_a_full_queue_holds_the_host_up_is_not_its_own(*, after_hold: bool) -> None:
    """600 rows wait for a device that begins late; then the host is held up once, with an operation before or after."""
    row_launch = LAUNCH_NS * np.arange(QUEUED + 1)
    row_launch[-1] += HELD_NS
    row_start = 1_000_000_000 + np.arange(QUEUED + 1)
    row_end = np.concatenate((row_start[:1], row_start + 1))
    held_from = int(row_launch[-2])
    operation_at = held_from + (HELD_NS if after_hold else 1_000)
    marks = np.array([0, QUEUED, QUEUED + 1])  # the rows before the window, the operation, and the last row
    reached = np.array([0, operation_at, int(row_launch[-1])])
    own = np.zeros(3, np.int64)
    host = follow_host(marks, reached, own, reached, reached, row_start, row_end, row_launch, NOTHING).host_ns
    launching = LAUNCH_NS * QUEUED
    assert host.sum() == pytest.approx(launching, abs=50_000)
    assert host[1] == pytest.approx(launching, abs=50_000)
