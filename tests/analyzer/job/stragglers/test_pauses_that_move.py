"""Pauses that go around the ranks, and those that a full machine makes on every rank now and then."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.lateness.turns import find_likeliest_order, iterations_to_decide, measure_turns
from fleetprof_analyzer.job.stragglers.moving_pauses import come_again, find_pauses, runs_move
from fleetprof_api.report.stragglers import Stragglers
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of

MS = 1_000_000
RAN_MS, WAITED_MS = 12, 30


def table_of(pauses: list[str], *, sampled: bool = True, waited_ms: int = WAITED_MS) -> OwnTime:
    """A row for each rank: 40 ms of pause where it has an x, in no operator; 12 ms on a core, and waits for one."""
    paused = np.array([[40 * MS if one == "x" else 0 for one in row] for row in pauses], np.int64)
    ran, waited = np.full_like(paused, RAN_MS * MS), np.full_like(paused, waited_ms * MS)
    own = paused + ran + waited
    nothing, unsaid = np.zeros_like(own), np.full(own.shape, np.nan)
    parts = {"busy": ran + waited, "data": nothing, "collection": nothing, "host": paused}
    samples: dict[str, Any] = {"ran_ns": ran.astype(float), "waited_ns": waited.astype(float)} if sampled else {}
    return OwnTime(
        np.zeros(len(own), np.int64), own, parts, nothing, parts, nothing, nothing, unsaid, unsaid, **samples
    )


def again(table: OwnTime) -> list[int]:
    """The ranks whose long pauses come again."""
    return np.flatnonzero(come_again(table, find_pauses(table)[1])).tolist()


@pytest.mark.parametrize(("pauses", "ranks"), [
    (["x.x.x.x.x.", ".x.x.x.x.x"], [0, 1]),
    (["x...x...", ".x...x..", "..x...x.", "...x...x"], [0, 1, 2, 3]),
    (["x.......", "...x....", ".....x..", "......x."], []),  # each is held up once
    (["x...x...", "........", ".....x..", "......x."], [0]),
    (["x...............x...", ".....x..........x...", "....................", "....................",], []),
    (["........", "........"], []),
    (["xxxxxxxxxx", "xxxxxxxxxx"], []),  # what a rank pauses in each iteration does not move
    (["xxxxxxxx.x", "x.xxxxxxxx"], []),
])  # fmt: skip
@pytest.mark.parametrize("waited_ms", [WAITED_MS, 3])
def test_pauses_come_again_or_do_not(pauses: list[str], ranks: list[int], waited_ms: int) -> None:
    assert again(table_of(pauses, waited_ms=waited_ms)) == ranks


def test_where_waits_for_a_core_are_much_longer_pauses_are_not_told_from_them() -> None:
    assert again(table_of(["x.x.x.x.", ".x.x.x.x"], waited_ms=90)) == []


def test_a_rank_is_judged_by_the_iterations_in_which_it_was_sampled() -> None:
    table = table_of(["x.x.x.....", ".x.x.x.x.x"])
    table.ran_ns[0, 5:] = np.nan
    assert again(table) == [0, 1]


def test_a_slow_loader_of_all_ranks_is_no_pause_that_moves() -> None:
    pauses, long = find_pauses(table_of(["xxxxxxxxxx", "xxxxxxxxxx"], sampled=False))
    assert not pauses.any()
    assert not long.any()


@pytest.mark.parametrize(("waited_ms", "ranks"), [(3, [0, 1]), (30, [])])
def test_without_samples_pauses_stand_beside_the_rest_of_the_own_time(waited_ms: int, ranks: list[int]) -> None:
    assert again(table_of(["x.x.x.x.", ".x.x.x.x"], sampled=False, waited_ms=waited_ms)) == ranks


def work_of(ran_ms: list[list[int]], waited_ms: list[list[int]]) -> OwnTime:
    """Ranks that run and wait for a core so long, iteration by iteration, and do nothing else."""
    ran, waited = np.array(ran_ms, np.int64) * MS, np.array(waited_ms, np.int64) * MS
    own, nothing = ran + waited, np.zeros_like(ran)
    parts = {"busy": own, "data": nothing, "collection": nothing, "host": nothing}
    return OwnTime(
        np.zeros(len(own), np.int64), own, parts, nothing, parts, nothing, nothing, np.full(own.shape, np.nan),
        np.full(own.shape, np.nan), ran_ns=ran.astype(float), waited_ns=waited.astype(float),
    )  # fmt: skip


STEADY = [10, 10, 10, 10, 10, 10]


@pytest.mark.parametrize(("ran_ms", "waited_ms", "move"), [
    ([[10, 30, 10, 10, 30, 10], [10, 10, 30, 10, 10, 30]], [STEADY, STEADY], True),  # work goes around the ranks
    ([[10, 11, 10, 10, 11, 10], [10, 10, 11, 10, 10, 11]], [STEADY, STEADY], False),  # a little of it
    # Threads that wait for cores run now longer and now shorter: what moves is the wait.
    ([[10, 14, 6, 10, 14, 10], [10, 6, 14, 10, 10, 14]], [[0, 5, 40, 20, 0, 30], [25, 0, 10, 40, 20, 0]], False),
    ([STEADY, STEADY], [[0, 5, 40, 20, 0, 30], [25, 0, 10, 40, 20, 0]], False),
])  # fmt: skip
def test_work_moves_where_it_is_what_moves_the_ranks(
    ran_ms: list[list[int]], waited_ms: list[list[int]], move: bool
) -> None:
    assert runs_move(work_of(ran_ms, waited_ms)) is move


def test_who_may_be_blocked_on_a_thread_that_waits_for_a_core_does_not_pause() -> None:
    table = table_of(["x.x.x.....", ".x.x.x.x.x"])
    waited = np.where(table.own_ns[1] > table.own_ns[1].min(), 90.0 * MS, 10.0 * MS)
    assert again(replace(table, others_waited_ns=np.array([np.full(10, np.nan), waited]))) == [0]


def noisy_table(pauses: list[str], jitter_ms: int) -> OwnTime:
    """The same of CPU-only ranks that are blocked for up to so long besides."""
    table = replace(table_of(pauses), on_host=True)
    noise = np.random.default_rng(3).integers(0, jitter_ms * MS, table.own_ns.shape)
    return replace(table, own_ns=table.own_ns + noise)


def turns_of(pauses: list[str]) -> list[list[int]] | None:
    """In which iterations each rank has its turn."""
    table = noisy_table(pauses, 4)
    found = measure_turns(table, find_likeliest_order(table, list(range(len(pauses[0])))))
    return None if found is None else [np.flatnonzero(row > 20 * MS).tolist() for row in found]


@pytest.mark.parametrize(("pauses", "turns"), [
    (["x.x.x.x.x.", ".x.x.x.x.x"], [[2, 4, 6, 8], [1, 3, 5, 7, 9]]),
    (["x.x.x.x.x...", ".x.x.x.x.x.x"], [[2, 4, 6, 8], [1, 3, 5, 7, 9, 11]]),  # one is missing
    (["x...x...x.", ".x...x...x", "..x...x...", "...x...x.."], [[4, 8], [1, 5, 9], [2, 6], [3, 7]]),
    (["..x...x...", ".x...x...x", "x...x...x.", "...x...x.."], [[2, 6], [1, 5, 9], [4, 8], [3, 7]]),
    ([".x.x.x.x.x", ".........."], None),  # only one of the ranks does so
    (["x..x..x..x", ".........."], None),
    (["xx..x.x..x", "..x.xx..x."], None),  # now and then
    (["x.x.", ".x.x"], None),  # too few
    (["xxxxxxxxxx", "xxxxxxxxxx"], None),
    (["..........", ".........."], None),
])  # fmt: skip
def test_turns_go_around_the_ranks(pauses: list[str], turns: list[list[int]] | None) -> None:
    assert turns_of(pauses) == turns


@pytest.mark.parametrize(("pauses", "jitter_ms", "is_in_doubt"), [
    (["x...x...x.", ".x...x...x", "..x...x...", "...x...x.."], 80, True),
    (["x.x.x..xx.", ".x.x.xx..x"], 4, True),  # two of them out of turn
    (["..........", ".........."], 120, False),
    (["x.x.", ".x.x"], 4, False),  # nothing is told of too few
])  # fmt: skip
def test_where_noise_hides_turns_more_iterations_would_tell(
    pauses: list[str], jitter_ms: int, *, is_in_doubt: bool
) -> None:
    table, count = noisy_table(pauses, jitter_ms), len(pauses[0])
    order = find_likeliest_order(table, list(range(count)))
    assert measure_turns(table, order) is None
    needed = iterations_to_decide(order)
    assert (needed is not None) == is_in_doubt
    assert needed is None or count < needed < 4 * count


def test_where_threads_were_not_sampled_there_are_no_turns() -> None:
    table = replace(table_of(["x.x.x.x.x.", ".x.x.x.x.x"], sampled=False), on_host=True)
    assert find_likeliest_order(table, list(range(10))) is None


def rotating(shape: JobShape, pauses: dict[int, list[int]]) -> tuple[Stragglers, float]:
    """(what is found where ranks pause in these iterations, what the job loses to that)."""
    pause_us = np.zeros((shape.ranks, shape.iterations))
    for rank, iterations in pauses.items():
        pause_us[rank, iterations] = 8_000
    job = PlantedJob(shape, PlantedFault("pauses", pause_us=pause_us, pause_is_seen=False), 1)
    lost = 1 - PlantedJob(shape, PlantedFault(), 1).length_ns / job.length_ns
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)))
    assert found is not None
    return found, lost


def test_pauses_in_turns_are_worth_what_they_take_and_a_single_one_is_no_turn() -> None:
    shape = JobShape(dp=4, layers=3, iterations=12, launch_share=0.2)
    found, lost = rotating(shape, {rank: [rank + 1, rank + 5] for rank in range(4)})
    assert (found.verdict, found.cause) == ("moving_imbalance", "host")
    assert found.gain == pytest.approx(lost, abs=0.05)
    once, _ = rotating(replace(shape, host_noise=0.6), {2: [4]})
    assert (once.verdict, once.ranks) == ("nobody", [])
