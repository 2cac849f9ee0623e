"""Unions are exact: they agree with counting every nanosecond."""

import numpy as np
from fleetprof_analyzer.trace.intervals import covered, join, length, union
from hypothesis import given
from hypothesis import strategies as st

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 20)), max_size=25)


def made(intervals: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([begin for begin, _ in intervals], np.int64)
    return start, start + np.array([size for _, size in intervals], np.int64)


def points(intervals: list[tuple[int, int]]) -> set[int]:
    return {point for begin, size in intervals for point in range(begin, begin + size)}


@given(INTERVALS)
def test_the_union_holds_each_nanosecond_once(intervals: list[tuple[int, int]]) -> None:
    starts, ends = union(*made(intervals))
    assert {p for s, e in zip(starts.tolist(), ends.tolist(), strict=True) for p in range(s, e)} == points(intervals)
    assert length((starts, ends)) == len(points(intervals))
    assert (starts < ends).all()
    assert (starts[1:] > ends[:-1]).all()


@given(INTERVALS, INTERVALS)
def test_joining_two_unions_is_the_union_of_all(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    joined = join(union(*made(first)), union(*made(second)))
    assert length(joined) == len(points(first) | points(second))


@given(INTERVALS)
def test_a_point_is_covered_when_an_interval_holds_it(intervals: list[tuple[int, int]]) -> None:
    every = np.arange(-5, 90, dtype=np.int64)
    inside = covered(every, union(*made(intervals)))
    assert set(every[inside].tolist()) == points(intervals)


def test_times_of_today_lose_no_nanosecond() -> None:
    now = 1_795_173_258_145_169_913
    assert length(union(np.array([now, now + 1]), np.array([now + 1, now + 3]))) == 3
