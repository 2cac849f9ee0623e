"""The waits of a late rank in a what-if: where its peers do, since its own trace shows the earliest place only."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.replay.joins import place_joins
from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.trace.trace import Int64s

# Each rank launches two operations and waits for both; (operation, is it a join) of its marks.
MARKS = [(0, False), (0, True), (1, False), (1, True), (2, False)]
OPERATIONS = 3
NOTHING = np.zeros(0, np.int64)


def laid_out(ranks: int) -> ReplayLayout:
    rank = np.repeat(np.arange(ranks), OPERATIONS)
    mark_rank = np.repeat(np.arange(ranks), len(MARKS))
    joins = np.array([joins for _, joins in MARKS] * ranks)
    operation = np.array([number for number, _ in MARKS] * ranks) + OPERATIONS * mark_rank
    return ReplayLayout(
        rank=rank, position=NOTHING, collective=NOTHING, part=NOTHING, previous=NOTHING, beside_previous=(),
        behind=NOTHING, stop_before=NOTHING,
        mark_rank=mark_rank, mark_operation=operation, mark_joins=joins, mark_waits=np.zeros_like(joins),
        mark_stops=joins, mark_origin=NOTHING, stop_mark=NOTHING, stop_previous=NOTHING, stop_awaits=NOTHING,
        operation_mark=NOTHING, collectives=0,
    )  # fmt: skip


def placed(*work_ns: list[int], owner: list[int]) -> list[int]:
    """The marks' work of the last rank beside its peers."""
    ranks = len(work_ns)
    layout = laid_out(ranks)
    owners = np.concatenate([np.array(owner) + OPERATIONS * number for number in range(ranks)])
    places: tuple[Int64s, Int64s] = (np.zeros(ranks * OPERATIONS, np.int64), np.tile(np.arange(OPERATIONS), ranks))
    found = place_joins(layout, np.concatenate(work_ns), owners, places, ranks - 1, np.arange(ranks - 1))
    assert found[: -len(MARKS)].tolist() == np.concatenate(work_ns[:-1]).tolist()  # peers stay as they are
    placed_work: list[int] = found[-len(MARKS) :].tolist()
    return placed_work


ALL_OF_LAST = [0, 2, 2, 2, 2]  # the second operation passes the chain: its launch begins no segment


@pytest.mark.parametrize(
    ("peers", "late", "expected"),
    [
        # Peers wait for the second operation after 8 tenths of the work; the late rank seems to after 2 tenths.
        ([[5, 0, 0, 80, 20], [5, 0, 0, 80, 20]], [5, 0, 0, 40, 160], [5, 0, 0, 160, 40]),
        # What comes behind the join moves with it, and the work of the segment stays.
        ([[5, 50, 0, 30, 20], [5, 50, 0, 30, 20]], [5, 0, 20, 20, 160], [5, 100, 0, 60, 40]),
        # A place that is later than at the peers is known to be no earlier.
        ([[5, 0, 0, 20, 80], [5, 0, 0, 20, 80]], [5, 0, 0, 160, 40], [5, 0, 0, 160, 40]),
    ],
)
def test_joins_stand_no_earlier_than_at_the_median_peer(
    peers: list[list[int]], late: list[int], expected: list[int]
) -> None:
    assert placed(*peers, late, owner=ALL_OF_LAST) == expected


def test_joins_stay_in_their_segment() -> None:
    """At the peers the first operation is waited for after the second's launch: no later than that here."""
    assert placed([5, 0, 0, 0, 9], [5, 30, 20, 0, 9], owner=[0, 1, 1, 2, 2]) == [5, 30, 20, 0, 9]
    assert placed([5, 50, 0, 0, 9], [5, 30, 20, 0, 9], owner=[0, 1, 1, 2, 2]) == [5, 50, 0, 0, 9]
    assert placed([0, 0, 0, 0, 0], [5, 30, 20, 0, 9], owner=[0, 1, 1, 2, 2]) == [5, 30, 20, 0, 9]
