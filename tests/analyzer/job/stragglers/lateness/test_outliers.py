"""Ranks with more late iterations than chance gives them, and what is no late iteration."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.outliers import find_outliers

LATE_RANK = 1


def excess(ranks: int, late: dict[int, float], others: dict[tuple[int, int], float] | None = None) -> np.ndarray:
    """Shares beyond the peers: noise of 0.3 %, and in ten iterations what was planted."""
    x: np.ndarray = 0.003 * np.random.default_rng(3).standard_normal((ranks, 10))
    for iteration, more in late.items():
        x[LATE_RANK, iteration] += more
    for place, more in (others or {}).items():
        x[place] += more
    return x


@pytest.mark.parametrize(("ranks", "late", "others", "is_found"), [
    (8, {2: 0.3, 5: 0.3, 6: 0.2}, None, True),
    (8, {2: 0.3, 5: 0.3}, None, False),  # twice is too seldom
    (3, {2: 0.3, 5: 0.3, 6: 0.2}, None, False),  # one of three has three such iterations by chance
    (4, {2: 0.3, 5: 0.3, 6: 0.2}, None, True),
    (8, {2: 0.3, 5: 0.3, 6: 0.2}, {(4, 4): 0.3}, False),  # others have one as well
    (8, {2: 0.3, 4: 0.3, 5: 0.3, 6: 0.2, 8: 0.3}, {(4, 4): 0.3}, True),
    (8, {2: 0.3, 5: 0.3, 6: 0.2}, {(4, 4): 0.03}, True),  # so small a one says nothing about long ones
])  # fmt: skip
def test_a_rank_is_found_that_is_late_more_often_than_chance_would_have_it(
    ranks: int, late: dict[int, float], others: dict[tuple[int, int], float] | None, *, is_found: bool
) -> None:
    x = excess(ranks, late, others)
    expected = [(LATE_RANK, sorted(late))] if is_found else []
    assert [(rank, np.flatnonzero(outlier).tolist()) for rank, outlier, _ in find_outliers([x])] == expected


def test_a_rank_whose_only_peer_is_slow_in_some_iterations_is_not_late_in_the_others() -> None:
    """In these three it is early, and in the seven others no later than its peer."""
    slow = dict.fromkeys(range(3, 6), 0.4)
    x = excess(8, slow, {(LATE_RANK - 1, iteration): -more for iteration, more in slow.items()})
    assert [rank for rank, _, _ in find_outliers([x])] == [LATE_RANK]
