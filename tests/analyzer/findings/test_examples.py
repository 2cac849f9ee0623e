"""Each finding has a place in time: the longest gap of its cause, else the iteration with most of what it is about."""

import pytest
from fleetprof_analyzer.findings.examples import give_examples
from fleetprof_api.report.findings import Example, Finding
from fleetprof_api.report.report import Iteration, Rank, TimeBreakdown
from fleetprof_api.report.report_tables import IdlePlace


def iteration(index: int, duration: int, exposed: int = 0, idle: int = 0, *, complete: bool = True) -> Iteration:
    time = TimeBreakdown(span=duration, exposed_communication=exposed, idle=idle)
    return Iteration(index=index, start_ns=1000 * index, duration_ns=duration, complete=complete, time_ns=time)


def rank(number: int | None, *iterations: Iteration, places: tuple[IdlePlace, ...] = ()) -> Rank:
    return Rank(
        rank=number, source=f"{number}", kind="gpu", time_basis="device", time_ns=TimeBreakdown(),
        iterations=list(iterations), idle_places=list(places),
    )  # fmt: skip


PLACE = IdlePlace(kind="python", time_ns=50, count=2, start_ns=1200, duration_ns=30)
OLD_PLACE = IdlePlace(kind="python", time_ns=90, count=2)
RANKS = [
    rank(0, iteration(1, 100, exposed=40, idle=9), iteration(2, 300, exposed=10, idle=20), places=(PLACE,)),
    rank(3, iteration(1, 100, exposed=90, idle=60), iteration(2, 900, exposed=99, complete=False), places=(OLD_PLACE,)),
]


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding(kind="python", message="", part="host"), (0, 1200, 30)),  # the gap that says when it was
        (Finding(kind="allocation", message="", part="host"), (3, 1000, 100)),
        (Finding(kind="exposed", message="", part="communication"), (3, 1000, 100)),
        (Finding(kind="exposed", message="", part="communication", ranks=[0]), (0, 1000, 100)),
        (Finding(kind="long_iterations", message="", part="iterations"), (0, 2000, 300)),
        (Finding(kind="copies", message="", part="copies"), None),  # no iteration has any
    ],
)
def test_examples(finding: Finding, expected: tuple[int, int, int] | None) -> None:
    (given,) = give_examples([finding], RANKS)
    wanted = None if expected is None else Example(rank=expected[0], start_ns=expected[1], duration_ns=expected[2])
    assert given.example == wanted


def test_a_trace_of_no_known_rank_or_without_iterations_is_no_example() -> None:
    (given,) = give_examples([Finding(kind="python", message="")], [rank(None, iteration(1, 5)), rank(1)])
    assert given.example is None
