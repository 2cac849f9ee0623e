"""A rank whose device runs kernels that its peers' do not, or more of them, has more work, not a slow device."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.unequal_work import more_kernels
from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.rank.communication.operations import Signature

ITERATIONS = 8
# kernels of one iteration on rank 0 and on its peers: (which, calls, µs a call) -> whether rank 0 has more work
CASES = [
    ([("mm", 10, 100), ("extra", 3, 100)], [("mm", 10, 100)], True),
    ([("mm", 13, 100)], [("mm", 10, 100)], True),
    ([("mm", 10, 130)], [("mm", 10, 100)], False),  # a slow device
    ([("mm", 10, 130), ("extra", 1, 10)], [("mm", 10, 100)], False),  # hardly any more
    ([("mm_128", 10, 130)], [("mm_256", 10, 100)], False),  # another kernel for the same work
]


def signatures(kernels: list[tuple[str, int, int]]) -> list[Signature]:
    return [Signature(hash(name), calls * ITERATIONS, 1_000 * duration_us) for name, calls, duration_us in kernels]


@pytest.mark.parametrize(("mine", "theirs", "more"), CASES)
def test_more_kernels_are_more_work(
    mine: list[tuple[str, int, int]], theirs: list[tuple[str, int, int]], more: bool
) -> None:
    busy = np.array(
        [[sum(1_000 * calls * us for _, calls, us in kernels)] * ITERATIONS for kernels in (mine, *[theirs] * 3)]
    )
    nothing, unsaid = np.zeros_like(busy), np.full(busy.shape, np.nan)
    table = OwnTime(
        np.zeros(4, np.int64), busy, {"busy": busy}, nothing, {}, nothing, nothing, unsaid, unsaid,
        signatures=[signatures(mine), *[signatures(theirs)] * 3],
    )  # fmt: skip
    late = Candidate(0, "persistent", 0.3, np.ones(ITERATIONS, np.bool_))
    found = more_kernels(table, late)
    assert (found is not None) == more
    if found is not None:
        assert (found.here, found.usual) == (sum(calls for _, calls, _ in mine), sum(calls for _, calls, _ in theirs))
