"""The share of an iteration that a cause takes while nothing is recorded, wherever a window begins."""

from itertools import accumulate

import pytest
from fleetprof_api.report.rank_tables import KnownCause
from harness.traces.written_loop import WrittenLoop

PERIOD, ROWS = 5, 60


def evaluating(
    in_iterations: range | tuple[int, ...], steps_ms: list[float] | None = None, more_rows: int = 0
) -> KnownCause:
    """Twelve iterations of 10 ms, some of which evaluate for 3.5 ms in four operators, and so many others."""
    loop = WrittenLoop(steps_ms=steps_ms or [])
    for number in in_iterations:
        for index in range(4):
            loop.add("aten::linear", 10 * number + 1 + index, 0.5)
        for at in range(more_rows):
            loop.add("aten::add", 10 * number + 1.6 + 0.001 * at, 0.001)
    loop.look_all_along()
    (one,) = [one for one in loop.causes() if one.cause == "evaluation"]
    return one


def steps(length_ms: float, count: int, *, after: bool = False) -> list[float]:
    """Ends of steps of one length, the last where the recording begins or the first behind its end."""
    return [200 + length_ms * at if after else length_ms * (at - count) for at in range(count + 1)]


@pytest.mark.parametrize("first", range(PERIOD))
def test_whole_periods_count_whatever_part_of_them_the_window_holds(first: int) -> None:
    assert evaluating(range(first, 12, PERIOD)).gain_permille == 70


@pytest.mark.parametrize(("in_iterations", "permille"), [((3,), 29), ((1, 2, 9), 87)])
def test_without_a_rhythm_the_window_counts(in_iterations: tuple[int, ...], permille: int) -> None:
    assert evaluating(in_iterations).gain_permille == permille


def collecting(steps_ms: list[float], step_numbers: int = ROWS) -> int | None:
    """A collector that takes 4 ms of each iteration's 10, beside so many rows of the recording."""
    loop = WrittenLoop(iterations=12, steps_ms=steps_ms)
    for number in range(12):
        loop.collections_ms.append((10 * number + 0.5, 4))
        for at in range(step_numbers):
            loop.add("aten::add", 10 * number + 5 + 0.01 * at, 0.005)
    loop.look_all_along()
    (one,) = [one for one in loop.causes() if one.cause == "garbage_collection"]
    return one.gain_permille


ADDED_MS = (ROWS + 5) * 0.002  # of an iteration with its own five rows, at 2 µs each


@pytest.mark.parametrize(("steps_ms", "permille"), [
    pytest.param([], 400, id="no steps outside"),
    pytest.param(steps(10 - ADDED_MS, 40), 405, id="2 µs a row"),
    pytest.param(steps(10 - ADDED_MS, 40, after=True), 405, id="as steps after it tell"),
    pytest.param(steps(5, 40), 407, id="no more than 3 µs a row"),
    pytest.param(steps(20, 40), 400, id="slower outside"),
    pytest.param(steps(5, 9), 400, id="too few steps"),
    pytest.param(list(accumulate([-200.0, *[10.0] * 12])), 400, id="steps in the recording"),
])  # fmt: skip
def test_what_recording_adds_is_no_part_of_an_iteration(steps_ms: list[float], permille: int) -> None:
    assert collecting(steps_ms) == permille


def test_what_recording_adds_to_the_cause_is_none_of_it() -> None:
    slower = evaluating(range(0, 12, PERIOD), steps(5, 40), more_rows=300)
    of_cause, of_period = 3.5 - 0.003 * 304, 50 - 0.003 * (304 + 5 * 5)
    assert slower.gain_permille == int(1000 * of_cause / of_period)
