"""Ranks that are clearly later than any other rank ever is."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.excess import are_apart, are_largest

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


@pytest.mark.parametrize(("ranks", "iterations", "largest", "is_found"), [
    (8, 8, 6, True),
    (8, 8, 5, False),  # one of eight ranks has so many in one of a hundred jobs
    (2, 8, 8, False),
    (2, 9, 9, True),
])  # fmt: skip
def test_who_has_the_most_in_too_many_iterations_does_not_have_it_by_chance(
    ranks: int, iterations: int, largest: int, *, is_found: bool
) -> None:
    x = np.random.default_rng(5).uniform(-0.01, 0.02, (ranks, iterations))
    x[LATE_RANK] = np.where(np.arange(iterations) < largest, 0.03, -0.02)
    assert np.flatnonzero(are_largest(x)).tolist() == ([LATE_RANK] if is_found else [])
