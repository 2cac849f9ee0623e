"""A job stands when it pauses longer than it ever did, and never before its first iteration."""

import pytest
from fleetprof_api.policy import StalledTrigger
from fleetprof_operator.policies.triggers.figures import Job, JobFigures
from fleetprof_operator.policies.triggers.stalled import StalledWatch
from fleetprof_operator.policies.triggers.watch import JobMoment

SECOND = 10**9
JOB = Job("team", "batch/v1", "Job", "llama")
MOVES_EACH_MINUTE = [(60 * n, n + 1) for n in range(5)]


def find_detections(moments: list[tuple[int, int | None]], until_s: int, for_s: int = 100) -> list[tuple[int, str]]:
    """(second, cause) of each detection; the job is looked at every five seconds and has made so many iterations."""
    watch = StalledWatch("stands", StalledTrigger(for_seconds=for_s))
    found = []
    for at_s in range(0, until_s, 5):
        iteration = next((n for begin_s, n in reversed(moments) if begin_s <= at_s), None)
        figures = JobFigures(job=JOB, ranks=2, began_unix_ns=7 * SECOND, iteration=iteration)
        for detection in watch.observe(JobMoment(figures, (1000 + at_s) * SECOND)):
            assert detection.occasion == f"iteration-{iteration}-of-7"
            found.append((at_s, detection.cause))
    return found


@pytest.mark.parametrize(
    ("moments", "until_s", "first_s"),
    [
        (MOVES_EACH_MINUTE, 240 + 180, None),  # three times its longest pause are 180 s
        (MOVES_EACH_MINUTE, 240 + 190, 240 + 180),
        ([(0, 1), (10, 2)], 200, 10 + 100),  # of quick iterations for_seconds counts
        ([*MOVES_EACH_MINUTE, (600, 6), (660, 7)], 600, 240 + 180),
        ([*MOVES_EACH_MINUTE, (400, 6), (460, 7)], 460 + 475, None),  # a checkpoint of 160 s is no stall
        ([(0, 9)], 295, None),  # whose past nobody has seen
        ([(0, 9)], 305, 300),
        ([(0, None)], 10_000, None),
        ([(0, 0)], 10_000, None),
    ],
)
def test_a_job_stands_when_it_pauses_longer_than_it_ever_did(
    moments: list[tuple[int, int | None]], until_s: int, first_s: int | None
) -> None:
    found = find_detections(moments, until_s)
    assert (found[0][0] if found else None) == first_s


def test_it_fires_again_while_the_job_stands() -> None:
    found = find_detections([(0, 1), (10, 2)], 330)
    assert [at_s for at_s, _ in found] == [110, 210, 310]
    assert found[0][1] == "no iteration of the whole job has ended for 100 s; the longest pause before was 10 s"
