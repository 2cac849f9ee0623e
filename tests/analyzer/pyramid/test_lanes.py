"""Lanes: rows of one do not overlap, and nesting goes down."""

from itertools import pairwise

import numpy as np
import pytest
from fleetprof_analyzer.pyramid.lanes import MOST_DEPTH, Lanes, arrange
from hypothesis import given
from hypothesis import strategies as st


def lanes_of(rows: list[tuple[int, int, int]]) -> Lanes:
    columns = np.array(rows, np.int64).reshape(len(rows), 3)
    return arrange(columns[:, 0].astype(np.int32), columns[:, 1].copy(), columns[:, 2].copy())


def depths(rows: list[tuple[int, int, int]]) -> list[int]:
    """The depth of each row, in the order given."""
    lanes = lanes_of(rows)
    found = [-1] * len(rows)
    for position, lane in zip(lanes.order.tolist(), lanes.lane.tolist(), strict=True):
        found[position] = int(lanes.depth[lane])
    return found


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, 0, 10), (0, 10, 5)], [0, 0]),
        ([(0, 0, 10), (0, 2, 3), (0, 3, 1), (0, 6, 2)], [0, 1, 2, 1]),
        ([(0, 2, 3), (0, 0, 10)], [1, 0]),
        ([(0, 0, 10), (0, 0, 4)], [0, 1]),
        ([(0, 0, 10), (1, 2, 3)], [0, 0]),
        ([(0, 5, 0), (0, 5, 0), (0, 6, 1)], [0, 1, 0]),
        # Kernels that overlap like steps take two lanes, however many they are.
        ([(0, at * 10, 11) for at in range(6)], [0, 1, 0, 1, 0, 1]),
    ],
    ids=["after", "nested", "out of order", "one start", "two tracks", "no time", "steps"],
)
def test_the_depth_of_rows(rows: list[tuple[int, int, int]], expected: list[int]) -> None:
    assert depths(rows) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=60))
def test_no_two_rows_of_a_lane_overlap_and_none_is_lost(rows: list[tuple[int, int, int]]) -> None:
    lanes = lanes_of(rows)
    assert sorted(lanes.order.tolist()) == list(range(len(rows)))
    assert lanes.left_out == 0
    for lane in range(len(lanes.track)):
        mine = [rows[at] for at in lanes.order[lanes.lane == lane].tolist()]
        assert {place for place, _, _ in mine} == {int(lanes.track[lane])}
        assert all(start + max(length, 1) <= after for (_, start, length), (_, after, _) in pairwise(mine))


def test_what_is_nested_too_deep_is_left_out_and_counted() -> None:
    lanes = lanes_of([(0, at, 1000 - 2 * at) for at in range(MOST_DEPTH + 5)])
    assert lanes.left_out == 5
    assert len(lanes.order) == MOST_DEPTH
