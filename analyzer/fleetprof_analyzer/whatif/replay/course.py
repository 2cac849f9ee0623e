"""One rank as a replay takes it: the rows of its streams in the order of launch, and what its host did in between.

The host is one chain over all threads that launch: events, and its own time before each. A launch makes a row ready;
a wait goes on when the row that it awaits has ended; a border begins an iteration. On a rank without a device the
rows are collectives on the threads of their backends. Guarantees: pure; integer nanoseconds of the rank's own clock.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.communication.chain.chain import ChainWork, find_joins
from fleetprof_analyzer.rank.communication.chain.program import position_in_program
from fleetprof_analyzer.rank.communication.launches import launch_times
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.rank.communication.sources import OperationSource, read_source
from fleetprof_analyzer.rank.communication.waiting.waits import find_waits
from fleetprof_analyzer.rank.host.marks import HostMarks
from fleetprof_analyzer.rank.iterations import Iterations
from fleetprof_analyzer.trace.classes import WorkClass, classify_kernel
from fleetprof_analyzer.trace.intervals import Union
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int32s, Int64s, Trace
from fleetprof_analyzer.whatif.replay.waiting import Awaited, find_awaited

_NO_WAITS: Final[Union] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


class HostEvent(IntEnum):
    """The kinds of events of a host."""

    LAUNCH = 0
    BORDER = 1
    WAIT = 2


@dataclass(frozen=True, slots=True)
class StreamRows:
    """n rows in the order of their launch; `operation` is their place among the rank's operations, -1: none.

    `row` is their place in the trace. `known`: the launch was recorded.
    """

    row: Int64s
    name: Int32s
    place: Int32s
    category: npt.NDArray[np.int8]
    called_ns: Int64s
    start_ns: Int64s
    duration_ns: Int64s
    known: Bools
    operation: Int64s

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Int64s:
        """Ends, shape (n,)."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, slots=True)
class HostEvents:
    """h events in time order. Before each the host did [`begin_ns`, `arrived_ns`) by itself; it left it at `left_ns`.

    `row`: of a wait what it awaits, -1: nothing that was recorded. `binds`: the row ended after the host had come.
    """

    kind: npt.NDArray[np.int8]
    begin_ns: Int64s
    arrived_ns: Int64s
    left_ns: Int64s
    row: Int64s
    binds: Bools
    launch: Int64s  # shape (n,) over the rows: the event that launched each, -1: not recorded

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def own_ns(self) -> Int64s:
        """The host's own time before each event, shape (h,)."""
        return self.arrived_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class RankCourse:
    """One rank, ready for a graph. `borders` are the positions of its iterations' begins and the last one's end."""

    trace: Trace
    rank: int | None
    kind: str
    rows: StreamRows
    host: HostEvents
    borders: Int64s
    bounds: list[tuple[int, int]]
    operations: RankOperations | None


def read_course(
    trace: Trace, found: Iterations, operations: RankOperations | None, rank: int | None
) -> RankCourse | None:
    """The course of one rank; None where it has neither work of a device nor iterations."""
    source = read_source(trace, HostMarks())
    on_device = bool(trace.rows.on_device.any())
    if not on_device and not found.iterations:
        return None
    rows = _rows(trace, source)
    bounds = [(one.start_ns, one.start_ns + one.duration_ns) for one in found.iterations]
    awaited = _awaited(trace, rows) if on_device else _joins(source, operations, rows)
    moments = [begin for begin, _ in bounds] + [end for _, end in bounds[-1:]]
    host, borders = _merge(rows, awaited, np.array(moments, np.int64))
    kind = "gpu" if on_device else "cpu"
    return RankCourse(trace, rank, kind, rows, host, borders, bounds, operations)


def _rows(trace: Trace, source: OperationSource | None) -> StreamRows:
    """Work of the device whose rows are most, and collectives of the host."""
    positions = np.flatnonzero(trace.rows.on_device)
    chosen = trace.rows.take(positions)
    if len(chosen):
        _, owner = trace.owners(chosen)
        busiest = np.bincount(owner, chosen.duration_ns).argmax()
        positions = positions[owner == busiest]
        chosen = trace.rows.take(positions)
    launch = launch_times(trace, chosen)
    columns: list[npt.NDArray[Any]] = [
        positions, chosen.name, chosen.place, chosen.category, launch.called, chosen.start_ns, chosen.duration_ns,
        launch.known, np.full(len(chosen), -1, np.int64),
    ]  # fmt: skip
    if source is not None:
        _name_operations(columns, source)
    order = order_by(columns[4], columns[5])
    return _in_stream_order(StreamRows(*(one[order] for one in columns)))


def _name_operations(columns: list[npt.NDArray[Any]], source: OperationSource) -> None:
    """Says of each row which operation it is, and adds the collectives of the host."""
    first: dict[tuple[int, int], int] = {}
    for number, key in enumerate(zip(source.place.tolist(), source.start_ns.tolist(), strict=True)):
        first.setdefault(key, number)
    mine = [first.get(key, -1) for key in zip(columns[2].tolist(), columns[5].tolist(), strict=True)]
    columns[8] = np.array(mine, np.int64).reshape(-1)
    here = np.flatnonzero(source.on_host)
    added = [
        np.full(len(here), -1), source.name[here], source.place[here], np.full(len(here), Category.OPERATOR),
        source.launch_ns[here], source.start_ns[here], source.duration_ns[here], np.ones(len(here), np.bool_), here,
    ]  # fmt: skip
    for number, more in enumerate(added):
        columns[number] = np.concatenate((columns[number], more)).astype(columns[number].dtype)


def _in_stream_order(rows: StreamRows) -> StreamRows:
    """A stream runs in the order of launches: what began earlier on it was launched no later."""
    called = rows.called_ns.copy()
    for place in np.unique(rows.place):
        here = np.flatnonzero(rows.place == place)
        by_start = here[np.argsort(rows.start_ns[here], kind="stable")]
        called[by_start] = np.minimum.accumulate(called[by_start][::-1])[::-1]
    order = order_by(called, rows.start_ns)
    columns = {name: getattr(rows, name)[order] for name in StreamRows.__dataclass_fields__}
    return StreamRows(**(columns | {"called_ns": called[order]}))


def _awaited(trace: Trace, rows: StreamRows) -> Awaited:
    host = trace.rows.select(~trace.rows.on_device)
    device = rows.row >= 0
    work = trace.rows.take(rows.row[device])
    waits = find_waits(host, trace.names, work, launch_times(trace, work))
    starts, ends = _NO_WAITS if waits is None else waits.known
    return find_awaited(starts, ends, rows.place, rows.called_ns, rows.end_ns)


def _joins(source: OperationSource | None, operations: RankOperations | None, rows: StreamRows) -> Awaited:
    """The points at which the training thread of a rank without a device waits for its collectives."""
    if source is None or operations is None:
        none = np.zeros(0, np.int64)
        return Awaited(none, none, none, np.zeros(0, np.bool_))
    columns = operations.columns
    position = position_in_program(columns.iteration, columns.kind, len(operations.iterations))
    end = source.start_ns + source.duration_ns
    work = ChainWork(
        source.row_start_ns, source.row_end_ns, source.launch_row, source.start_ns, end, source.tolerance_ns
    )
    join = find_joins(work, position)
    joined = np.flatnonzero(join < len(source.row_start_ns))
    row_of = np.full(len(end), -1, np.int64)
    has = rows.operation >= 0
    row_of[rows.operation[has]] = np.flatnonzero(has)
    left = source.row_start_ns[join[joined]]
    begin = np.minimum(np.maximum(source.row_end_ns[join[joined]], source.launch_ns[joined]), left)
    return Awaited(begin, left, row_of[joined], end[joined] > begin)


def _merge(rows: StreamRows, awaited: Awaited, borders: Int64s) -> tuple[HostEvents, Int64s]:
    """All events of the host by time; a wait begins no sooner than what was launched meanwhile."""
    calls, launch = np.unique(rows.called_ns[rows.known], return_inverse=True)
    plain = np.concatenate((calls, borders))
    ordered = np.sort(plain)
    before = np.searchsorted(ordered, awaited.end_ns) - 1
    latest = np.where(before >= 0, ordered[np.maximum(before, 0)], awaited.begin_ns) if len(ordered) else 0
    begin = np.maximum(awaited.begin_ns, latest)
    at = np.concatenate((plain, begin))
    left = np.concatenate((plain, awaited.end_ns))
    kind = np.repeat((HostEvent.LAUNCH, HostEvent.BORDER, HostEvent.WAIT), (len(calls), len(borders), len(begin)))
    row = np.concatenate((np.full(len(plain), -1, np.int64), awaited.row))
    binds = np.concatenate((np.zeros(len(plain), np.bool_), awaited.binds))
    order = np.lexsort((kind, left, at))
    at, left = np.maximum.accumulate(at[order]), np.maximum.accumulate(left[order])
    at = np.maximum(at, np.concatenate((at[:1], left[:-1])))
    left = np.maximum(left, at)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    of_row = np.full(len(rows), -1, np.int64)
    of_row[rows.known] = place[launch]
    events = HostEvents(
        kind[order].astype(np.int8), np.concatenate((at[:1], left[:-1])), at, left, row[order], binds[order], of_row
    )
    return events, place[len(calls) : len(plain)]


def iterations_of_events(course: RankCourse) -> Int64s:
    """The iteration in which each event of the host was, -1 outside, shape (h,)."""
    passed = np.cumsum(course.host.kind == HostEvent.BORDER) - 1
    return np.where(passed < len(course.bounds), passed, -1)


def classes_of(course: RankCourse) -> list[WorkClass]:
    """The kind of each row of a course."""
    trace, rows = course.trace, course.rows
    by_name: dict[tuple[int, int], WorkClass] = {}
    for name, category in set(zip(rows.name.tolist(), rows.category.tolist(), strict=True)):
        if category == Category.OPERATOR:
            by_name[name, category] = WorkClass.COMMUNICATION
        elif category == Category.KERNEL:
            by_name[name, category] = classify_kernel(trace.names[name], trace.kernel_classes)
        else:
            by_name[name, category] = WorkClass.MEMORY
    return [by_name[one] for one in zip(rows.name.tolist(), rows.category.tolist(), strict=True)]
