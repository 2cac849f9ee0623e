"""Pauses of every n-th iteration: which rhythm, and whose."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.rhythm import add_rhythmic, find_rhythm
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime

MS = 1_000_000


@pytest.mark.parametrize(("late", "every"), [
    ("..x..x..x.", 3),
    ("...x..x..x", 3),   # the pause before the window's first collective was not recorded
    ("x.x.x.x.x.", 2),
    ("x.x..x..x..", 3),  # the recording begins in the first one
    ("x...x.x...x", None),
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


@pytest.mark.parametrize("longest", [110, 716])
def test_a_pause_of_a_rhythm_may_be_much_longer_than_the_others(longest: int) -> None:
    (found,) = add_rhythmic(own_time(EVEN, [10, 50, 11, 12, longest, 10, 9, 52, 10], EVEN), [], NUMBERS)
    assert late_in(found) == [1, 4, 7]


def test_a_suspect_is_suspected_for_its_rhythm() -> None:
    always = Candidate(1, LatePattern.PERSISTENT, 0.3, np.ones(9, np.bool_))
    (found,) = add_rhythmic(own_time(EVEN, THIRD, EVEN), [always], NUMBERS)
    assert late_in(found) == [1, 4, 7]


@pytest.mark.parametrize("others", [
    [THIRD],  # alone
    [THIRD, [50, 10, 11, 52, 10, 9, 55, 10, 12], [10, 11, 50, 9, 10, 52, 11, 10, 55]],  # a turn that goes around
    [THIRD, [10, 9, 45, 11, 10, 12, 10, 9, 11]],  # another one does so too, once
])  # fmt: skip
def test_nobody_is_suspected_for_what_all_do_or_for_noise(others: list[list[int]]) -> None:
    assert add_rhythmic(own_time(*others), [], NUMBERS) == []


def blocked_time(*blocked_ms: list[float]) -> OwnTime:
    """Ranks that run 12 ms, wait for a core now long and now short, and are blocked so long; nan: not sampled."""
    blocked = np.array(blocked_ms)
    waited = np.where(np.arange(blocked.size).reshape(blocked.shape) % 5 == 1, 150.0, 40.0)
    ran = np.where(np.isnan(blocked), np.nan, 12.0)
    own = ((np.nan_to_num(blocked) + waited + 12) * MS).astype(np.int64)
    nothing, unsaid = np.zeros_like(own), np.full(own.shape, np.nan)
    parts = {"busy": nothing, "data": nothing, "collection": nothing, "host": own}
    return OwnTime(
        np.zeros(len(own), np.int64), own, parts, nothing, parts, nothing, nothing, unsaid, unsaid, ran_ns=ran * MS,
        waited_ns=waited * MS, on_host=True,
    )  # fmt: skip


NEVER = [3.0, 10, 4, 0, 10, 0, 2, 0, 0, 5, 5, 0, 7, 6, 1, 0, 5, 2, 6, 1]
EVERY_THIRD = [30.0, 88, 0, 2, 77, 2, 0, 81, 0, 29, 78, 0, 17, 84, 2, 0, 76, 5, 0, 86]
UNKNOWN = [*EVERY_THIRD[:-1], np.nan]  # the last iteration is often not sampled to its end
# Both ranks are blocked now and then as well, once longer than any pause.
AMONG_STRAYS = [55.0, 0, 58, 37, 0, 111, 5, 0, 67, 18, 0, 88, 3, 0, 223, 0, 66, 78, 0, 4]
STRAYS = [*NEVER[:12], 74.0, *NEVER[13:]]
FOURTH = [0.0, 40, 2, 3, 1, 40, 0, 2, 4, 40, 1, 0, 3, 40, 0, 2, 1, 40, 0, 3]


@pytest.mark.parametrize(("blocked", "late"), [
    ([NEVER, EVERY_THIRD], [1, 4, 7, 10, 13, 16, 19]),
    ([NEVER, UNKNOWN], [1, 4, 7, 10, 13, 16]),
    ([STRAYS, EVERY_THIRD], [1, 4, 7, 10, 13, 16, 19]),
    ([NEVER, AMONG_STRAYS], [2, 5, 8, 11, 14, 17]),
    ([NEVER, NEVER, AMONG_STRAYS, STRAYS], [2, 5, 8, 11, 14, 17]),
    ([NEVER[:10], EVERY_THIRD[:10]], [1, 4, 7]),
    ([NEVER[:8], EVERY_THIRD[:8]], []),  # too few iterations
    ([NEVER, [*EVERY_THIRD[:7], 0.0, *EVERY_THIRD[8:]]], []),  # one is missing
    ([EVERY_THIRD, EVERY_THIRD], []),  # what all ranks do
    ([[40 - 40 * (at % 2) for at in range(20)], [40 * (at % 2) for at in range(20)]], []),  # they take turns
    ([NEVER, [40.0] * 20], []),  # always
    ([FOURTH[4 - at :] + FOURTH[: 4 - at] for at in range(4)], []),
])  # fmt: skip
def test_a_rank_that_is_blocked_in_a_rhythm_is_suspected_however_long_ranks_wait_for_cores(
    blocked: list[list[float]], late: list[int]
) -> None:
    table = blocked_time(*blocked)
    found = add_rhythmic(table, [], list(range(table.own_ns.shape[1])))
    assert [late_in(one) for one in found] == ([late] if late else [])
    assert all(one.by == "blocked" for one in found)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("count", [10, 20])
def test_pauses_at_random_have_no_rhythm(ranks: int, count: int) -> None:
    draw = np.random.default_rng(7)
    found = 0
    for _ in range(200):
        table = blocked_time(*(draw.exponential(20, (ranks, count)) * (draw.random((ranks, count)) < 0.3)).tolist())
        found += bool(add_rhythmic(table, [], list(range(count))))
    assert found <= 4
