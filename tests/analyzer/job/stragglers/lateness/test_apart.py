"""Ranks that are clearly later than any other rank ever is."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.excess import are_apart

LATE_RANK = 1


@pytest.mark.parametrize(("ranks", "late", "is_found"), [
    (2, 20, True),
    (2, 19, False),  # two ranks of a full machine differ like that by chance
    (7, 19, False),
    (8, 19, True),
    (8, 15, True),
    (8, 14, False),
])  # fmt: skip
def test_among_many_ranks_three_quarters_of_the_iterations_are_enough(ranks: int, late: int, is_found: bool) -> None:
    x = np.random.default_rng(5).uniform(-0.1, 0.1, (ranks, 20))
    x[LATE_RANK] = np.where(np.random.default_rng(6).permutation(20) < late, 0.4, -0.2)
    assert np.flatnonzero(are_apart(x)).tolist() == ([LATE_RANK] if is_found else [])
