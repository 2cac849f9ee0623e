"""The change from one capture to the next, as the settings that would have foretold it."""

import pytest
from fleetprof_analyzer.whatif.changes import CapturedRun, find_settings


def run(ranks: int = 4, samples: float | None = 8, stragglers: tuple[int, ...] | None = ()) -> CapturedRun:
    return CapturedRun([1e6], ranks, samples, stragglers)


CHANGES: list[tuple[CapturedRun, CapturedRun, list[str]]] = [
    (run(), run(), []),
    (run(), run(ranks=8), ["ranks=8"]),
    (run(), run(samples=16), ["batch_size=16"]),
    (run(), run(samples=None), []),
    (run(samples=None), run(samples=None, ranks=2), ["ranks=2"]),
    (run(stragglers=(3,)), run(), ["without-straggler=3"]),
    (run(stragglers=(1, 3)), run(), ["without-straggler=1", "without-straggler=3"]),
    (run(stragglers=(3,)), run(stragglers=(3,)), []),
    (run(stragglers=(3,)), run(stragglers=None), []),
    (run(), run(stragglers=(3,)), []),  # nobody foretells a fault
    (run(), run(ranks=8, samples=16), []),  # two things at once
    (run(stragglers=(3,)), run(ranks=8), []),
]


@pytest.mark.parametrize(("before", "after", "settings"), CHANGES)
def test_settings_of_a_change(before: CapturedRun, after: CapturedRun, settings: list[str]) -> None:
    assert find_settings(before, after) == settings
