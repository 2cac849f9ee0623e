"""The change from one capture to the next, as the settings that would have foretold it."""

import pytest
from fleetprof_analyzer.whatif.changes import CapturedRun, describe_run, find_settings
from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_api.report.report import Rank, Report, TimeBreakdown


def run(ranks: int = 4, samples: float | None = 8, stragglers: tuple[int, ...] | None = ()) -> CapturedRun:
    return CapturedRun([1e6], ranks, samples, stragglers)


CHANGES: list[tuple[CapturedRun, CapturedRun, list[str]]] = [
    (run(), run(), []),
    (run(), run(ranks=8, samples=16), ["ranks=8"]),  # samples are the job's
    (run(), run(samples=16), ["batch_size=16"]),
    (run(samples=1e6), run(samples=2_500_000), ["batch_size=2500000"]),
    (run(), run(samples=None), []),
    (run(samples=None), run(samples=None, ranks=2), ["ranks=2"]),
    (run(stragglers=(3,)), run(), ["without-straggler=3"]),
    (run(stragglers=(1, 3)), run(), ["without-straggler=1", "without-straggler=3"]),
    (run(stragglers=(3,)), run(stragglers=(3,)), []),
    (run(stragglers=(3,)), run(stragglers=None), []),
    (run(), run(stragglers=(3,)), []),  # nobody foretells a fault
    (run(), run(ranks=8), []),  # two things at once: each rank has half the batch
    (run(stragglers=(3,)), run(ranks=8, samples=16), []),
]


@pytest.mark.parametrize(("before", "after", "settings"), CHANGES)
def test_settings_of_a_change(before: CapturedRun, after: CapturedRun, settings: list[str]) -> None:
    assert find_settings(before, after) == settings
    read_edits(settings)


@pytest.mark.parametrize(("world_size", "ranks"), [(None, 2), (2, 2), (64, 64)])
def test_a_sample_of_the_ranks_is_no_smaller_job(world_size: int | None, ranks: int) -> None:
    captured = [
        Rank(rank=number, source="", kind="gpu", time_basis="device", time_ns=TimeBreakdown(), world_size=world_size)
        for number in range(2)
    ]
    assert describe_run(Report(ranks=captured)).ranks == ranks
