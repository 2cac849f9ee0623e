"""Runs of the collector: by its own word, where a saving of the host saves time."""

import pytest
from harness.traces.written_loop import WrittenLoop

MS = 1_000_000
RUNS = [(10 * number + 1.0, 4.0) for number in range(12)]


def test_runs_within_the_iterations_count() -> None:
    (found,) = WrittenLoop(collections_ms=[(-9.0, 5.0), *RUNS]).causes()
    assert (found.cause, found.time_ns, found.count) == ("garbage_collection", 48 * MS, 12)
    assert (found.iterations, found.longest_ns) == (12, 4 * MS)


def test_a_window_between_long_runs_has_the_rate_of_before() -> None:
    """A run of 300 ms every 500 ms, the last ends 100 ms before the window; a short one is in it."""
    long = [(-1900.0 + 500 * number, 300.0) for number in range(4)]
    (found,) = WrittenLoop(collections_ms=[*long, (31.0, 1.0)]).causes()
    assert (found.count, found.iterations, found.longest_ns) == (4, 0, 300 * MS)
    assert found.time_ns == pytest.approx(120 * MS * 900 / 1600, rel=0.001)


def test_a_run_beside_work_of_the_device_costs_nothing() -> None:
    (found,) = WrittenLoop(gpu=True, collections_ms=[(5.0, 2.0), (26.2, 1.0)]).causes()
    assert found.count == 2
    assert found.time_ns == pytest.approx(MS, abs=5000)


@pytest.mark.parametrize("loop", [
    pytest.param(WrittenLoop(), id="a silence of 6 ms in each iteration"),
    pytest.param(WrittenLoop(collections_ms=[(-9.0, 5.0)]), id="one before the recording"),
    pytest.param(WrittenLoop(collections_ms=[(-900.0, 300.0), (-500.0, 300.0), (-160.0, 100.0)]), id="three before it"),
])  # fmt: skip
def test_nothing_else_is_taken_for_it(loop: WrittenLoop) -> None:
    assert not loop.causes()
