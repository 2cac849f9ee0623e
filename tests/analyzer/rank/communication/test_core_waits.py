"""Counters between samples, read for each iteration."""

import pytest
from fleetprof_analyzer.rank.communication.core_waits import CoreWaits, waits_by_iteration
from fleetprof_analyzer.rank.measures.core_use import measure_core_use
from fleetprof_api.report.report import Iteration
from fleetprof_api.report.report_tables import CoreUse
from fleetprof_api.samples import HostColumns, RankSamples, ThreadColumns

MS = 1_000_000
BEGIN = 1_700_000_000_000_000_000


def sampled(at_ms: list[int], waited_ms: list[int | None], **more: object) -> RankSamples:
    """A rank whose thread has run for 5 ms in each 10 ms, and whose process waits twice as long as the thread."""
    thread = ThreadColumns(
        at_unix_ns=[BEGIN + at * MS for at in at_ms],
        stack=[None] * len(at_ms),
        ran_ns=[at * MS // 2 for at in at_ms],
        waited_ns=[None if waited is None else waited * MS for waited in waited_ms],
        process_ran_ns=[at * MS for at in at_ms],
        process_waited_ns=[None if waited is None else 2 * waited * MS for waited in waited_ms],
        involuntary_switches=[2 * at for at in at_ms],
    )
    return RankSamples(rank=0, thread=thread, usable_cores=1, torch_threads=8, **more)  # type: ignore[arg-type]


def bounds(*iterations_ms: tuple[int, int]) -> list[tuple[int, int]]:
    return [(BEGIN + start * MS, BEGIN + end * MS) for start, end in iterations_ms]


def test_waits_are_shared_out_by_time_between_samples() -> None:
    samples = sampled([0, 10, 20, 40], [0, 4, None, 16])
    found = waits_by_iteration(samples, bounds((0, 10), (10, 25), (25, 40)))
    assert found.waited_ns == pytest.approx([4 * MS, 6 * MS, 6 * MS], abs=1)
    assert found.others_waited_ns == pytest.approx([4 * MS, 6 * MS, 6 * MS], abs=1)
    assert found.ran_ns == pytest.approx([5 * MS, 7.5 * MS, 7.5 * MS], abs=1)
    assert (found.usable_cores, found.torch_threads) == (1, 8)


def test_an_iteration_that_samples_cover_for_the_most_part_is_taken_in_proportion() -> None:
    found = waits_by_iteration(sampled([1, 10, 17], [0, 9, 16]), bounds((0, 10), (10, 20)))
    assert found.waited_ns == [pytest.approx(10 * MS, abs=1), None]  # 90 % are covered, and 70 %


@pytest.mark.parametrize("samples", [None, RankSamples(rank=0), sampled([3], [1])])
def test_without_two_samples_nothing_is_known(samples: RankSamples | None) -> None:
    found = waits_by_iteration(samples, bounds((0, 10)))
    assert (found.ran_ns, found.waited_ns) == ([], [])


def test_the_report_has_the_sums_of_the_iterations_that_samples_cover() -> None:
    iterations = [
        Iteration(index=number, start_ns=BEGIN + number * 10 * MS, duration_ns=10 * MS) for number in range(3)
    ]
    assert measure_core_use(sampled([0, 10, 20], [0, 4, 8]), iterations) == CoreUse(
        sampled_ns=20 * MS, ran_ns=10 * MS, waited_ns=8 * MS, involuntary_switches=40, usable_cores=1, torch_threads=8
    )
    assert measure_core_use(RankSamples(rank=0), iterations) is None
    assert waits_by_iteration(None, []) == CoreWaits()


@pytest.mark.parametrize(("at_ms", "permille", "busy"), [
    ([-100, 0, 100], [10, 20, 990], 990),  # a sample speaks of the time before it
    ([-50, 50, 150], [0, 500, 1000], 750),
    ([0, 70], [0, 900], None),  # 70 % are covered
    ([0, 100], [0, None], None),
    ([], [], None),
])  # fmt: skip
def test_how_busy_the_host_was_during_the_iterations(
    at_ms: list[int], permille: list[int | None], busy: int | None
) -> None:
    host = HostColumns(at_unix_ns=[BEGIN + at * MS for at in at_ms], cpu_busy_permille=permille)
    assert waits_by_iteration(RankSamples(rank=0, host=host), bounds((0, 40), (40, 100))).host_busy_permille == busy
