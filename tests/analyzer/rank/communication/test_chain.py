"""The waits of a rank's own work for its communication, and what fills the time in between."""

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.chain.chain import Chain, ChainWork, build_chain, find_joins
from fleetprof_analyzer.rank.communication.chain.gaps import Fillings, fill_segments
from fleetprof_analyzer.trace.intervals import Union, covered_length, union
from hypothesis import given
from hypothesis import strategies as st


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def chain_of(rows: list[tuple[int, int]], operations: list[tuple[int, int, int]]) -> Chain:
    """`rows` are (start, end) of local work in launch order; `operations` (rows launched before, start, end)."""
    starts = ints(*(start for start, _ in rows))
    ends = np.maximum.accumulate(ints(0, *(end for _, end in rows)))
    launch, begin, end = (ints(*column) for column in zip(*operations, strict=True))
    work = ChainWork(starts, ends, launch, begin, end, tolerance_ns=0)
    return build_chain(work, find_joins(work, np.full(len(launch), -1, np.int64)))


# name: rows, operations -> marks as (operation, joins, own time); what lies before the first mark is not known
CHAINS = {
    "waits at once": (
        [(0, 10), (30, 40)], [(1, 10, 30)],
        [(0, False, 0), (0, True, 0)],
    ),
    "goes on beside it, then waits": (
        [(0, 10), (10, 20), (30, 40)], [(1, 10, 30)],
        [(0, False, 0), (0, True, 10)],
    ),
    "a gap after it is own time of what comes next": (
        [(0, 10), (45, 50)], [(1, 10, 30), (2, 50, 60)],
        [(0, False, 0), (0, True, 0), (1, False, 20)],
    ),
    "what begins only after it is launched after its join": (
        [(0, 10), (70, 80)], [(1, 10, 30), (1, 30, 70)],
        [(0, False, 0), (0, True, 0), (1, False, 0), (1, True, 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_the_chain_waits_where_the_work_did(name: str) -> None:
    rows, operations, marks = CHAINS[name]
    found = chain_of(rows, operations)
    chain = zip(found.mark_operation.tolist(), found.mark_joins.tolist(), found.own_ns.tolist(), strict=True)
    assert list(chain) == marks


@pytest.mark.parametrize(("begin_ns", "own_ns"), [(None, 0), (-90, 100), (5, 5)])
def test_own_time_before_the_first_operation_is_known_from_when_the_chain_began(
    begin_ns: int | None, own_ns: int
) -> None:
    """A row ends at 10, when the first operation is launched."""
    work = ChainWork(ints(0, 30), ints(0, 10, 40), ints(1), ints(10), ints(30), tolerance_ns=0, begin_ns=begin_ns)
    assert build_chain(work, ints(1)).own_ns.tolist() == [own_ns, 0]


def test_an_operation_that_ended_early_is_joined_where_the_program_joins_it() -> None:
    """Three iterations of two rows: in the second the operation is over before the first row after it begins."""
    starts = ints(0, 10, 40, 100, 115, 140, 200, 210, 240)
    ends = np.maximum.accumulate(ints(0, 10, 20, 50, 110, 125, 150, 210, 220, 250))
    work = ChainWork(starts, ends, ints(1, 4, 7), ints(10, 110, 210), ints(40, 112, 240), tolerance_ns=0)
    assert find_joins(work, ints(0, 0, 0)).tolist() == [2, 5, 8]


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8)


def union_of(pairs: list[tuple[int, int]]) -> Union:
    return union(ints(*(start for start, _ in pairs)), ints(*(start + length for start, length in pairs)))


@given(spans, st.lists(st.integers(-5, 90), min_size=1, max_size=10))
def test_covered_length_agrees_with_counting(pairs: list[tuple[int, int]], points: list[int]) -> None:
    held = {moment for start, length in pairs for moment in range(start, start + length)}
    found = covered_length(ints(*points), union_of(pairs))
    assert found.tolist() == [sum(moment < point for moment in held) for point in points]


@given(spans, spans, spans, spans)
def test_the_parts_of_a_segment_agree_with_counting(
    pieces: list[tuple[int, int]],
    busy: list[tuple[int, int]],
    data: list[tuple[int, int]],
    frames: list[tuple[int, int]],
) -> None:
    def held(pairs: list[tuple[int, int]]) -> set[int]:
        return {moment for start, length in pairs for moment in range(start, start + length)}

    start, end = union_of(pieces)
    owner = np.arange(len(start))
    fillings = Fillings(union_of(busy), union_of(data), union_of(frames), union_of([]))
    fill = fill_segments(start, end, owner, len(start), fillings)
    for number in range(len(start)):
        inside = set(range(int(start[number]), int(end[number])))
        loading = inside & held(data) - held(busy)
        assert fill.busy_ns[number] == len(inside & held(busy))
        assert fill.data_ns[number] == len(loading)
        assert fill.collection_ns[number] == len(inside & held(frames) - held(busy) - held(data))
        left = inside - held(busy) - held(data)
        runs = [len(run) for run in "".join("x" if m in left else " " for m in range(100)).split()]
        assert fill.pause_ns[number] == max(runs, default=0)
        assert fill.quiet_ns[number] == fill.pause_ns[number]
