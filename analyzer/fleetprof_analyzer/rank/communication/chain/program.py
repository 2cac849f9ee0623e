"""The iteration of each operation of a rank, and its place in the program.

From the iterations of the trace; without them from the shortest pattern in which the operations repeat, with what the
rank does between them: buckets of one size or micro-batches look like iterations by their operations alone.
Guarantees: an operation outside the iterations found has iteration -1; positions are given only to iterations that hold
the program.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.iterations import Iterations
from fleetprof_analyzer.trace.trace import Int32s, Int64s

_LONGEST_PERIOD: Final = 20_000
_MOST_PERIODS: Final = 2_000
_LEAST_TIMES: Final = 3
_LEAST_AGREEING: Final = 0.9
_AS_MUCH: Final = 0.95


def assign_iterations(
    found: Iterations,
    launch_ns: Int64s,
    operation: Int64s,
    between: Sequence[Int64s],
    streams: Int32s | None = None,
) -> tuple[list[int], Int32s]:
    """(indices of the iterations, position of each operation's iteration among them).

    `operation`, shape (n,): the same number for the same kind and group. `between`: numbers for what the rank did since
    the operation before, the finest first, which tell micro-batches from iterations. `streams` of the operations are
    given where launches are not known. A device may be iterations behind its host, and begin what it receives early:
    then each stream's operations are dealt out in equal parts, where there are as many.
    """
    if found.iterations and streams is not None:
        dealt = _deal_out(len(found.iterations), streams, operation)
        if dealt is not None:
            return [i.index for i in found.iterations], dealt
    if found.iterations:
        starts = np.array([i.start_ns for i in found.iterations], np.int64)
        ends = np.array([i.start_ns + i.duration_ns for i in found.iterations], np.int64)
        at = np.searchsorted(starts, launch_ns, side="right") - 1
        inside = (at >= 0) & (launch_ns < ends[np.maximum(at, 0)])
        return [i.index for i in found.iterations], np.where(inside, at, -1).astype(np.int32)
    period = _longer(operation, _period(operation), between)
    numbers = np.arange(len(operation)) // period
    whole = len(operation) // period
    return list(range(whole)), np.where(numbers < whole, numbers, -1).astype(np.int32)


def _deal_out(count: int, streams: Int32s, tokens: Int64s) -> Int32s | None:
    """The same number of each stream's operations, alike in order, to each iteration; None where they do not go up."""
    iteration = np.zeros(len(streams), np.int32)
    for stream in np.unique(streams):
        here = np.flatnonzero(streams == stream)
        each = len(here) // count
        if each * count != len(here) or not np.array_equal(tokens[here[each:]], tokens[here[: len(here) - each]]):
            return None
        iteration[here] = np.repeat(np.arange(count), each)
    return iteration


def position_in_program(iteration: Int32s, kind: npt.NDArray[np.int8], count: int) -> Int64s:
    """Operations numbered within their iteration, shape (n,); -1 in iterations whose kinds differ from the program's.

    The program is the sequence of kinds that most of the `count` iterations share.
    """
    position = np.full(len(iteration), -1, np.int64)
    members = [np.flatnonzero(iteration == number) for number in range(count)]
    programs = Counter(kind[here].tobytes() for here in members if len(here))
    if programs:
        (program, _), *_ = programs.most_common(1)
        for here in members:
            if kind[here].tobytes() == program:
                position[here] = np.arange(len(here))
    return position


def _period(tokens: Int64s) -> int:
    """The shortest period of the whole sequence that occurs at least twice, else its length."""
    count = len(tokens)
    for period in range(1, min(count // 2, _LONGEST_PERIOD) + 1):
        if tokens[period] == tokens[0] and np.array_equal(tokens[period:], tokens[:-period]):
            return period
    return max(count, 1)


def _longer(operation: Int64s, period: int, between: Sequence[Int64s]) -> int:
    """The shortest multiple of the period after which what was done between the operations repeats as well."""
    periods = np.arange(period, min(len(operation) // _LEAST_TIMES, _LONGEST_PERIOD) + 1, period)[:_MOST_PERIODS]
    for tokens in between:
        # What came before the first operation was cut by the window's edge.
        inner = tokens[1 : _LONGEST_PERIOD + 1]
        periods = periods[periods < len(inner)]
        agree = np.array([float((inner[one:] == inner[:-one]).mean()) for one in periods.tolist()])
        if agree.max(initial=0) >= _LEAST_AGREEING:
            return int(periods[agree >= _AS_MUCH * agree.max()][0])
    return period
