"""Operations and iterations of different ranks that are the same are found where order and numbers do not say it."""

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.replay.keys import ORDER, PAIR, Key, key_by_order
from fleetprof_analyzer.job.stragglers.replay.partners.periods import agree_on_periods
from fleetprof_analyzer.job.stragglers.replay.partners.uneven import drop_uneven, place_dropped, place_in_order
from fleetprof_analyzer.job.stragglers.replay.partners.windows import shifts_by_ends
from fleetprof_analyzer.rank.communication.operations import KINDS, Group, OperationColumns
from harness.traces.simulated.cases import draw_simulated
from harness.traces.straggler_sections import operations_of_traces

SEND, RECEIVE, ALL_REDUCE = (KINDS.index(kind) for kind in ("send", "receive", "all_reduce"))


@pytest.mark.parametrize(("ends", "others", "places"), [
    ([10, 20, 30], [10, 20, 30], [0, 1, 2]),
    ([20, 30], [10, 20, 30], [1, 2]),
    ([10, 30], [10, 20, 30], [0, 2]),
    ([10, 20], [10, 20, 30], [0, 1]),
    ([9, 41], [10, 20, 30, 40], [0, 3]),
    ([11, 12], [10, 20, 30, 40], [0, 1]),  # each has its own, in order
    ([], [10], []),
])  # fmt: skip
def test_what_a_rank_lacks_is_told_by_the_ends(ends: list[int], others: list[int], places: list[int]) -> None:
    assert place_in_order(np.array(ends, np.int64), np.array(others, np.int64)).tolist() == places


def rank_of(rank: int, starts: list[int], **columns: Any) -> Any:
    count = len(starts)
    kept = {"kind": [ALL_REDUCE] * count, "group": [0] * count, "peer": [-1] * count, "iteration": [0] * count}
    arrays = {name: np.array(value) for name, value in (kept | columns).items()}
    times = {"start_ns": np.array(starts, np.int64), "duration_ns": np.full(count, 2, np.int64)}
    iterations = list(range(int(arrays["iteration"].max()) + 1)) if count else []
    groups = [Group("dp", (0, 1), 2)]
    one = SimpleNamespace(rank=rank, columns=SimpleNamespace(**arrays, **times), groups=groups, iterations=iterations)
    return type("Rank", (), {"__len__": lambda _: count, **vars(one)})()


@pytest.mark.parametrize(("counts", "agreed"), [
    ([8, 8, 4, 2], [8, 8, 8, 8]),
    ([8, 4], [8, 8]),
    ([4, 4, 8], [4, 4, 4]),
    ([8, 8, 7], [8, 8, 7]),  # a window that was cut
    ([8, 8], [8, 8]),
])  # fmt: skip
def test_ranks_agree_on_iterations_that_nothing_marks(counts: list[int], agreed: list[int]) -> None:
    kinds, job = [ALL_REDUCE, SEND, RECEIVE], draw_simulated("fsdp", "none", 1).job
    one = replace(operations_of_traces(job.traces())[0], indices_proven=False)
    ranks = []
    for count in counts:
        total = 24 if 24 % count == 0 else 3 * count
        rows = {field.name: getattr(one.columns, field.name)[:total] for field in fields(one.columns)}
        rows["kind"] = np.array(kinds * (total // 3), np.int8)
        rows["iteration"] = np.arange(total, dtype=np.int32) // (total // count)
        ranks.append(replace(one, iterations=list(range(count)), columns=OperationColumns(**rows)))
    found = agree_on_periods(ranks)
    assert [len(rank.iterations) for rank in found] == agreed
    assert [len(set(rank.columns.iteration.tolist())) for rank in found] == agreed
    proven = [replace(rank, indices_proven=True) for rank in ranks]
    assert [len(rank.iterations) for rank in agree_on_periods(proven)] == counts


def test_the_operations_behind_a_lost_one_keep_their_partners() -> None:
    ranks = [rank_of(0, [10, 20, 30, 40]), rank_of(1, [1010, 1030, 1040])]
    what = (ORDER, "dp", ALL_REDUCE, 0)
    keys: list[list[Key]] = [[(what, number + 1) for number in range(len(one))] for one in ranks]
    dropped = drop_uneven(keys)
    assert keys == [[None] * 4, [None] * 3]
    place_dropped(ranks, keys, dropped, (np.array([0, -1000]), [True, True]))
    assert [[key[1] for key in of_rank if key] for of_rank in keys] == [[1, 2, 3, 4], [1, 3, 4]]


def test_without_a_common_clock_they_have_none() -> None:
    ranks = [rank_of(0, [10, 20]), rank_of(1, [10])]
    what = (ORDER, "dp", ALL_REDUCE, 0)
    keys: list[list[Key]] = [[(what, number + 1) for number in range(len(one))] for one in ranks]
    place_dropped(ranks, keys, drop_uneven(keys), (np.array([0, 0]), [True, False]))
    assert keys == [[None, None], [None]]


@pytest.mark.parametrize(("kinds", "counted_as"), [
    (([SEND, SEND], [RECEIVE, RECEIVE]), (0, 1)),
    (([SEND, RECEIVE], [RECEIVE, SEND]), None),  # each has one of its own
    (([SEND, SEND], [RECEIVE, SEND]), (0, 1)),  # the second of both does both, and says its first part
])  # fmt: skip
def test_exchanges_that_say_one_direction_only_are_matched_by_their_order(
    kinds: tuple[list[int], list[int]], counted_as: tuple[int, int] | None
) -> None:
    ranks = [rank_of(n, [10, 20], kind=kinds[n], peer=[1 - n, 1 - n]) for n in (0, 1)]
    keys = key_by_order(ranks, [np.zeros(2, np.int64)] * 2)
    assert keys is not None
    if counted_as is None:
        assert sorted(map(str, keys[0])) == sorted(map(str, keys[1]))
        assert len({str(key) for key in keys[0]}) == 2
    else:
        assert keys == [[((PAIR, counted_as, 0), 1), ((PAIR, counted_as, 0), 2)]] * 2


LENGTHS = [100, 130, 90, 160, 110, 140, 95, 150]


@pytest.mark.parametrize(("first", "last", "shifts"), [
    (0, 8, [-8, -8]),  # the same window
    (1, 8, [-8, -7]),  # its beginning missed
    (0, 7, [-8, -8]),  # its end missed
    (2, 8, [-8, -6]), (0, 3, [-8, -3]),  # too few are left to tell
])  # fmt: skip
def test_windows_belong_together_where_their_iterations_end_together(first: int, last: int, shifts: list[int]) -> None:
    ends = np.cumsum(LENGTHS)

    def rank(number: int, chosen: Any, clock: int) -> Any:
        return rank_of(number, (chosen + clock).tolist(), iteration=np.arange(len(chosen)))

    assert shifts_by_ends([rank(0, ends, 0), rank(1, ends[first:last], 5_000)]) == shifts
