"""The pace of a process's steps over seconds: reports (step, second) → the mean step."""

import pytest
from fleetprof_sidecar.processes.mean_pace import MeanPace

SECOND_NS = 10**9
# 20 ms an iteration, and a collection of 1.7 s in every fourth: 445 ms on average.
COLLECTOR = [(4 * number, 1.78 * number) for number in range(40)]


@pytest.mark.parametrize(
    ("reports", "step_ms"),
    [
        ([], 0),
        ([(0, 0)], 0),
        ([(0, 0), (10, 4)], 0),
        ([(0, 0), (10, 5)], 500),
        ([(0, 0), (10, 5), (11, 11), (21, 16)], 500),  # a checkpoint of the job's own
        ([(0, 0), (10, 5), (3, 6), (13, 16)], 1000),  # it began anew
        (COLLECTOR, 445),
    ],
)
def test_the_mean_step_has_the_pauses_of_the_job(reports: list[tuple[int, float]], step_ms: int) -> None:
    pace = MeanPace()
    for step, second in reports:
        pace.note(step, round(second * SECOND_NS))
    assert pace.step_ns == step_ms * 10**6


def test_a_minute_is_remembered() -> None:
    pace = MeanPace()
    for second in range(600):
        pace.note(second if second < 300 else 300 + 10 * (second - 300), second * SECOND_NS)
    assert pace.step_ns == SECOND_NS // 10
