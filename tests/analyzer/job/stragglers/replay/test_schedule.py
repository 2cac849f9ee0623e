"""Operations that seem to wait for each other in a circle: sends are let go before receives are."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.replay.graph.plan import plan
from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import KINDS

SEND, RECEIVE, ALL_REDUCE = (KINDS.index(kind) for kind in ("send", "receive", "all_reduce"))


def facing(first: int, second: int, places: tuple[int, int] = (0, 1)) -> Matched:
    """Two ranks that launch and join first one operation, then another: each one's first is the other's second."""
    columns = SimpleNamespace(
        kind=np.array([first, second], np.int8), group=np.zeros(2, np.int32), peer=np.full(2, -1, np.int32),
        place=np.array(places), start_ns=np.array([0, 1]),
        behind=np.array([-1, -1]), mark_operation=np.array([0, 0, 1, 1]),
        mark_joins=np.array([False, True, False, True]), mark_waits=np.zeros(4, np.bool_),
        mark_awaits=np.zeros(4, np.int32),
    )  # fmt: skip
    rank: Any = type("Rank", (), {"__len__": lambda _: 2, "columns": columns})()
    inside = np.zeros(2, np.int64)
    collective = [np.array([0, 1]), np.array([1, 0])]
    return Matched([rank, rank], [0], [inside, inside], collective, 2, np.ones(2, np.bool_))


def test_receives_still_hold_the_chain_up_where_sends_only_seem_to() -> None:
    layout, _ = plan(facing(SEND, RECEIVE))
    joined = layout.mark_operation[layout.mark_joins]
    assert [(int(layout.rank[one]), int(layout.position[one])) for one in joined] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("first", [RECEIVE, ALL_REDUCE])
def test_what_waits_in_the_circle_is_let_go_where_that_is_not_enough(first: int) -> None:
    layout, steps = plan(facing(first, SEND))
    assert int(layout.mark_joins.sum()) == 0
    assert sum(len(step.collectives) for step in steps) == 2


def test_streams_that_contradict_each_other_hold_nothing_up() -> None:
    layout, steps = plan(facing(ALL_REDUCE, ALL_REDUCE, places=(0, 0)))
    assert layout.previous.tolist() == [-1, -1, -1, -1]
    assert sum(len(step.collectives) for step in steps) == 2
