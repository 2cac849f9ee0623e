"""Pauses of every n-th iteration: which rhythm, and whose."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.rhythm import add_rhythmic, find_rhythm
from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime

MS = 1_000_000


@pytest.mark.parametrize(("late", "every"), [
    ("..x..x..x.", 3),
    ("...x..x..x", 3),   # the pause before the window's first collective was not recorded
    ("x.x.x.x.x.", 2),
    ("x....x....", None),  # two only
    ("..x..x.x..", None),
    ("..x..x....x", None),
    ("....x..x..x", None),  # one is missing in the beginning
    ("xxxxxxxxxx", None),
    ("..........", None),
])  # fmt: skip
def test_a_rhythm_is_complete_or_none(late: str, every: int | None) -> None:
    numbers = list(range(100, 100 + len(late)))
    assert find_rhythm(np.array([one == "x" for one in late]), numbers) == every


def own_time(*own_ms: list[int]) -> OwnTime:
    own = np.array(own_ms, np.int64) * MS
    nothing, unsaid = np.zeros_like(own), np.full(own.shape, np.nan)
    parts = {"busy": nothing, "data": nothing, "collection": nothing, "host": own}
    return OwnTime(np.zeros(len(own), np.int64), own, parts, nothing, parts, nothing, nothing, unsaid, unsaid)


EVEN = [10, 12, 9, 11, 10, 12, 9, 11, 10]
THIRD = [10, 50, 11, 12, 55, 10, 9, 52, 10]
NUMBERS = list(range(9))


def late_in(candidate: Candidate) -> list[int]:
    return np.flatnonzero(candidate.iterations).tolist()


def test_a_rank_that_pauses_in_a_rhythm_is_suspected() -> None:
    (found,) = add_rhythmic(own_time(EVEN, THIRD, EVEN), [], NUMBERS)
    assert (found.rank, found.pattern, late_in(found)) == (1, "intermittent", [1, 4, 7])


def test_a_suspect_is_suspected_for_its_rhythm() -> None:
    always = Candidate(1, "persistent", 0.3, np.ones(9, np.bool_))
    (found,) = add_rhythmic(own_time(EVEN, THIRD, EVEN), [always], NUMBERS)
    assert late_in(found) == [1, 4, 7]


@pytest.mark.parametrize("others", [
    [THIRD],  # alone
    [THIRD, [50, 10, 11, 52, 10, 9, 55, 10, 12], [10, 11, 50, 9, 10, 52, 11, 10, 55]],  # a turn that goes around
    [THIRD, [10, 9, 45, 11, 10, 12, 10, 9, 11]],  # another one does so too, once
])  # fmt: skip
def test_nobody_is_suspected_for_what_all_do_or_for_noise(others: list[list[int]]) -> None:
    assert add_rhythmic(own_time(*others), [], NUMBERS) == []
