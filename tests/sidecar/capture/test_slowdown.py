"""The slowdown of the iterations of a running capture are."""

from itertools import accumulate

import pytest
from fleetprof_sidecar.capture.process_capture import Terms
from fleetprof_sidecar.capture.slowdown import SlowdownWatch, SlowdownWatches
from fleetprof_sidecar.processes.views import StepView

SECOND_NS = 10**9


@pytest.mark.parametrize(
    ("reports", "percent"),
    [
        ([(90, 0), (98, 0), (99, 100), (103, 700), (105, 1000)], None),
        ([(99, 100), (101, 340), (103, 580)], None),
        ([(99, 100), (101, 440), (103, 800)], 70),
        ([(99, 100), (101, 440), (103, 1400)], 70),  # the quicker of the two
        ([(99, 100), (101, 9000), (103, 9200), (105, 18_000)], None),  # pauses of the job's own
        ([(99, 100), (101, 440)], None),
        ([(99, 100), (100, 900), (100, 1900)], None),  # less than one whole iteration
        ([(50, 0), (60, 99_999), (70, 999_999)], None),  # before the window
        ([(107, 100), (109, 440), (111, 9000)], None),  # behind it: the trace is being written
    ],
)
def test_a_slowdown_counts_from_the_windows_first_step(reports: list[tuple[int, int]], percent: int | None) -> None:
    """An iteration is of two steps and usually takes 200 s."""
    watch = SlowdownWatch(200 * SECOND_NS, first_step=100, last_step=109, steps_per_iteration=2, limit_percent=50)
    found = [watch.observe(step, at * SECOND_NS) for step, at in reports]
    assert found[-1] == percent
    assert found[:-1] == [None] * (len(reports) - 1)


@pytest.mark.parametrize(
    ("steps", "slow"),
    [
        ([3, 3, 3, 3, 10, 3, 3], False),  # another program begins on the same cores, and once more
        ([3, 3, 3, 3, 3], True),
        ([10, 10, 3, 3, 3, 3, 3], True),
    ],
)
def test_short_iterations_have_to_be_slow_for_five_seconds(steps: list[int], slow: bool) -> None:
    """`steps` is how many steps each second of the window brings; usually it brings ten."""
    watch = SlowdownWatch(SECOND_NS // 10, first_step=0, last_step=99, steps_per_iteration=1, limit_percent=200)
    reports = zip(accumulate(steps, initial=0), range(len(steps) + 1), strict=True)
    found = [watch.observe(step, second * SECOND_NS) for step, second in reports]
    assert found[:-1] == [None] * len(steps)
    assert (found[-1] is not None) is slow


def test_without_a_baseline_there_is_no_slowdown() -> None:
    watch = SlowdownWatch(baseline_ns=0, first_step=1, last_step=9, steps_per_iteration=1, limit_percent=1)
    assert [watch.observe(step, step * 10**6) for step in range(5)] == [None] * 5


@pytest.mark.parametrize(("mean_ns", "stopped"), [(0, True), (445_000_000, False), (140_000_000, True)])
def test_pauses_that_the_job_makes_by_itself_are_no_slowdown(mean_ns: int, stopped: bool) -> None:
    """Iterations of 20 ms, and a collection of 1.7 s in every fourth, before the window as in it."""
    terms = Terms(
        capture_id="c",
        process_id="p",
        rank=0,
        has_agent=True,
        first_step=0,
        iterations=100,
        iteration_ns=20_000_000,
        mean_iteration_ns=mean_ns,
        max_slowdown_percent=200,
    )
    watches = SlowdownWatches()
    steps = [StepView(4 * number, number * 1_780_000_000, 20_000_000, 1) for number in range(10)]
    assert any(watches.judge("c", terms, step) for step in steps) is stopped
