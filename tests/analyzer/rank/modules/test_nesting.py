"""Rows of a thread lie in each other by their times, however many overlap."""

import numpy as np
import numpy.typing as npt
import pytest
from fleetprof_analyzer.rank.modules.nesting import NOWHERE, nest
from fleetprof_analyzer.trace.trace import Category, Rows

US = 1_000


def rows(start_ns: npt.ArrayLike, end_ns: npt.ArrayLike, category: npt.ArrayLike = Category.OPERATOR) -> Rows:
    start = np.asarray(start_ns, np.int64)
    zeros, missing = np.zeros(len(start), np.int32), np.full(len(start), -1, np.int64)
    return Rows(
        category=np.broadcast_to(np.asarray(category, np.int8), len(start)), name=zeros, place=zeros, start_ns=start,
        duration_ns=np.asarray(end_ns, np.int64) - start, correlation=missing, shape=zeros - 1, collective=zeros - 1,
        detail=missing,
    )  # fmt: skip


OPERATOR, CALL = Category.OPERATOR, Category.RUNTIME


@pytest.mark.parametrize(
    ("spans", "kinds", "parents", "own_us"),
    [
        ([(0, 90), (10, 40), (20, 30), (50, 60)], OPERATOR, [NOWHERE, 0, 1, 0], [50, 20, 10, 10]),
        # A call takes nothing from the operator around it, and is around nothing.
        ([(0, 90), (10, 40), (20, 30)], [OPERATOR, CALL, OPERATOR], [NOWHERE, 0, 0], [80, 30, 10]),
        # One that overlaps another is in what is around both, and the third is in the second.
        ([(0, 90), (10, 40), (30, 60), (35, 39)], OPERATOR, [NOWHERE, 0, 0, 2], [30, 30, 26, 4]),
        # What ends later by what times are rounded to lies inside all the same.
        ([(0, 20), (10, 21)], OPERATOR, [NOWHERE, 0], [10, 11]),
    ],
    ids=["nested", "call", "overlapping", "rounded"],
)
def test_parents_and_own_time(
    spans: list[tuple[int, int]], kinds: npt.ArrayLike, parents: list[int], own_us: list[int]
) -> None:
    start, end = np.array(spans).T * US
    found, own_ns = nest(rows(start, end, kinds))
    assert (found, (own_ns // US).tolist()) == (parents, own_us)


def test_rows_that_all_overlap_are_not_compared_with_each_other() -> None:
    at = np.arange(200_000)
    found, _ = nest(rows(at, at * 2 * US + 10**9))
    assert found == [NOWHERE] * len(at)
