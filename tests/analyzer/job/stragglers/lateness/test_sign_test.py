"""Ranks that run longer or are blocked longer in most iterations, on machines that are full of other work."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.lateness.sign_test import find_candidates

MS = 1_000_000
ITERATIONS = 20
NO_REPLAY: Any = None


def crowded(ranks: int, seed: int, *, iterations: int = ITERATIONS, spells: bool = False) -> OwnTime:
    """CPU-only ranks that run 12 ms, wait 100 ms for a core, and are blocked a little, all of it now and then longer.

    In `spells` one of the ranks waits thrice as long, for five iterations in a row.
    """
    noise = np.random.default_rng(seed)
    shape = (ranks, iterations)
    ran, waited, blocked = (12 * MS * noise.lognormal(0, 0.2, shape), 100 * MS * noise.lognormal(0, 0.4, shape),
                            10 * MS * noise.exponential(1, shape))  # fmt: skip
    if spells:
        for start in range(0, iterations, 5):
            waited[noise.integers(ranks), start : start + 5] *= 3
    return _table(ran, waited, blocked)


def _table(ran: Floats, waited: Floats, blocked: Floats) -> OwnTime:
    own = np.rint(ran + waited + blocked).astype(np.int64)
    nothing, unsaid = np.zeros_like(own), np.full(own.shape, np.nan)
    parts = {"busy": own, "data": nothing, "collection": nothing, "host": nothing}
    return OwnTime(
        np.zeros(len(own), np.int64), own, parts, nothing, parts, nothing, nothing, unsaid, unsaid, ran_ns=ran,
        waited_ns=waited, on_host=True,
    )  # fmt: skip


def longer(table: OwnTime, rank: int, *, ran: float = 1.0, blocked_ms: float = 0.0) -> OwnTime:
    """The same, the rank running so many times as long, with its waits for a core, or blocked so much longer."""
    more = (ran - 1) * (table.ran_ns + table.waited_ns) + blocked_ms * MS
    here = (np.arange(len(table.own_ns)) == rank)[:, None]
    return replace(
        table,
        own_ns=table.own_ns + np.where(here, more, 0).astype(np.int64),
        ran_ns=np.where(here, table.ran_ns * ran, table.ran_ns),
        waited_ns=np.where(here, table.waited_ns * ran, table.waited_ns),
    )


def found(table: OwnTime) -> list[tuple[int, str]]:
    return [(candidate.rank, candidate.by) for candidate in find_candidates(NO_REPLAY, table)]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("ran", "blocked_ms", "by"), [(2.5, 0, "peers"), (1, 60, "blocked")])
def test_a_rank_that_runs_longer_or_is_blocked_longer_is_found_among_long_waits(
    ranks: int, ran: float, blocked_ms: float, by: str
) -> None:
    tables = [longer(crowded(ranks, seed, spells=True), 1, ran=ran, blocked_ms=blocked_ms) for seed in range(20)]
    assert sum(found(table) == [(1, by)] for table in tables) >= 19


def test_a_rank_that_runs_longer_and_is_blocked_longer_is_one_suspect() -> None:
    assert found(longer(crowded(4, 1), 1, ran=2.5, blocked_ms=60)) == [(1, "peers")]


@pytest.mark.parametrize("spells", [False, True])
@pytest.mark.parametrize("ranks", [2, 4])
def test_of_ranks_that_lack_cores_in_spells_none_is_found(ranks: int, *, spells: bool) -> None:
    assert sum(bool(found(crowded(ranks, seed, spells=spells))) for seed in range(200)) <= 2


def test_times_that_come_in_spells_tell_less_than_so_many_iterations_would() -> None:
    hump = [0, 20, 40, 60, 80, 100, 80, 60, 40, 30, 40, 60, 80, 100, 120, 100, 80, 60, 0, 0]
    apart = [0, 60, 100, 20, 80, 40, 80, 0, 60, 100, 30, 60, 120, 40, 80, 60, 100, 0, 80, 40]
    tables = []
    for row in (hump, apart):
        mine = np.array(row, np.float64) * MS
        blocked = np.array([mine, np.where(mine > 0, 0, 40.0 * MS)])
        tables.append(_table(np.full(blocked.shape, 12.0 * MS), np.full(blocked.shape, 30.0 * MS), blocked))
    assert [found(table) for table in tables] == [[], [(0, "blocked")]]


@pytest.mark.parametrize(("iterations", "is_found"), [(5, False), (10, True)])
def test_few_iterations_are_not_enough(iterations: int, *, is_found: bool) -> None:
    tables = [longer(crowded(2, seed, iterations=iterations), 1, ran=2.5) for seed in range(20)]
    assert sum(bool(found(table)) for table in tables) >= 14 if is_found else not any(map(found, tables))


@pytest.mark.parametrize(("ran", "blocked_ms"), [(1, 4), (1.3, 0)])
def test_what_hardly_counts_and_what_a_slower_core_does_is_no_fault_however_often_it_comes(
    ran: float, blocked_ms: float
) -> None:
    assert found(longer(crowded(2, 1), 1, ran=ran, blocked_ms=blocked_ms)) == []


@pytest.mark.parametrize("left_out", ["samples", "cores"])
def test_where_threads_were_not_sampled_or_devices_work_nobody_is_found(left_out: str) -> None:
    table = longer(crowded(2, 1), 1, ran=2.5)
    unsaid = np.full(table.own_ns.shape, np.nan)
    without = (
        replace(table, ran_ns=unsaid, waited_ns=unsaid) if left_out == "samples" else replace(table, on_host=False)
    )
    assert found(without) == []
