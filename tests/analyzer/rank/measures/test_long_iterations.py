"""Iterations that stand apart from the others of their rank, and where in them the time lies."""

from collections.abc import Sequence
from typing import cast

import pytest
from fleetprof_analyzer.rank.measures.stages.long_iterations import find_long, measure_long_iterations
from fleetprof_analyzer.rank.measures.stages.loss import Span
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report_tables import StageName

HERE = PlaceInCode(file="train.py", line=7)


def stages_of(iterations: list[dict[str, int]]) -> list[dict[StageName, int]]:
    """ns of each stage in each iteration."""
    return [{cast(StageName, name): time for name, time in each.items()} for each in iterations]


@pytest.mark.parametrize(("lengths", "positions"), [
    ([10] * 20, []),
    ([10] * 9 + [50] + [10] * 9 + [50], [9, 19]),
    ([10] * 9 + [50] + [10] * 9 + [500], [9, 19]),  # as different as they are from each other
    ([50, *[10] * 9, 50, *[10] * 9], [0, 10]),
    ([50, *[10] * 19], []),  # where a recording begins
    ([10] * 19 + [29], []),  # less than three times the median
    ([4, 6, 5, 3, 4, 7, 21, 17, 15, 26, 18, 14, 9, 18, 4, 10, 12, 17, 13, 33], []),  # noise, of any length
    ([10] * 7 + [50], [7]),
    ([10] * 6 + [50], []),  # too few
    ([10] * 15 + [50] * 5, [15, 16, 17, 18, 19]),
    ([10] * 14 + [50] * 6, []),  # nothing that is done now and then
    ([], []),
])  # fmt: skip
def test_which_stand_apart(lengths: list[int], positions: list[int]) -> None:
    assert find_long(lengths) == positions


def test_a_stage_is_named_that_holds_most_of_it_and_the_line_is_looked_for_in_these() -> None:
    lengths = [10] * 9 + [50]
    looked: list[Span] = []
    bounds = [(sum(lengths[:at]), sum(lengths[: at + 1])) for at in range(10)]

    def find_code(spans: Sequence[Span]) -> PlaceInCode:
        looked.extend(spans)
        return HERE

    usual, long = {"forward": 8, "host": 2}, {"forward": 20, "host": 30}
    found = measure_long_iterations(bounds, stages_of([*[usual] * 9, long]), find_code)
    assert found is not None
    assert (found.positions, found.usual_ns, found.stage, found.place) == ([9], 10, "host", HERE)
    assert looked == [(90, 140)]
    usual, long = {"forward": 5, "host": 5}, {"forward": 20, "host": 19, "loss": 11}
    even = measure_long_iterations(bounds, stages_of([*[usual] * 9, long]), find_code)
    assert even is not None
    assert even.stage is None


def test_without_any_there_is_nothing_to_look_for() -> None:
    assert measure_long_iterations([(0, 1)] * 20, [{}] * 20, lambda _: pytest.fail("looked")) is None
