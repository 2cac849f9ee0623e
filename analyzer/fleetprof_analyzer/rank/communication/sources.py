"""The rows of a trace that the chain of operations is made of, for a GPU rank or a CPU-only one.

Guarantees: operations and local rows are in launch order; what a rank's device or thread did is taken from one clock
only.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fleetprof_analyzer.rank.communication.batches import split_batches
from fleetprof_analyzer.rank.communication.chain.described import described_by_host
from fleetprof_analyzer.rank.communication.chain.gaps import Fillings, waits_for_batches
from fleetprof_analyzer.rank.communication.flows import restore_flows
from fleetprof_analyzer.rank.communication.launches import LaunchTimes, launch_times
from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS
from fleetprof_analyzer.rank.communication.waiting.waits import Waits, find_waits
from fleetprof_analyzer.rank.host.marks import HostMarks
from fleetprof_analyzer.trace.classes import (
    WorkClass,
    classify_kernel,
    is_collection,
    is_collective_range,
    is_data_loading,
    is_host_annotation,
    is_host_communication,
)
from fleetprof_analyzer.trace.intervals import Union, covered, join, union
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import COLUMNS, NO_ROWS, Bools, Category, Int32s, Int64s, Rows, Trace

_COMMUNICATION: Final = WorkClass.COMMUNICATION
_DEVICE_TOLERANCE_NS: Final = 2_000
# A thread that waits may wake before the range of what it waited for is closed.
_HOST_TOLERANCE_NS: Final = 200_000
_NOTHING: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class OperationSource:
    """n operations, and m local rows of the chain (`row_*`).

    `launch_row` counts the rows launched before each operation.
    """

    kind: Literal["gpu", "cpu"]
    name: Int32s
    collective: Int32s
    place: Int32s
    on_host: Bools
    launch_ns: Int64s
    start_ns: Int64s
    duration_ns: Int64s
    launch_row: Int64s
    row_start_ns: Int64s
    row_end_ns: Int64s  # shape (m + 1,): when all rows before row k had ended
    tolerance_ns: int
    busy: Union
    data: Union
    collection: Union
    recorded: Union
    row_launch_ns: Int64s | None  # None: launches were not recorded
    waits: Waits | None  # None: calls were not recorded
    thread: Rows  # all rows of the training thread
    local: Rows
    local_launch_ns: Int64s
    overlapped: Bools
    cut: bool
    row_name: Int32s

    @property
    def between(self) -> tuple[Int64s, Int64s]:
        """The launches since the operation before, shape (n,): a hash of the rows' names, and their number."""
        first = np.concatenate(([0], self.launch_row[:-1]))
        names = [
            zlib.crc32(self.row_name[begin:end].tobytes())
            for begin, end in zip(first.tolist(), self.launch_row.tolist(), strict=True)
        ]
        return np.array(names, np.int64), self.launch_row - first

    def fillings(self, *, busy: bool) -> Fillings:
        """Times of all that ran; without `busy` as the host alone sees it."""
        return Fillings(self.busy if busy else _NOTHING, self.data, self.collection, self.recorded)


def read_source(trace: Trace, marks: HostMarks) -> OperationSource | None:
    """The rows of one rank, and what `marks` add to them; None where it communicates with nobody."""
    trace = restore_flows(trace)
    on_device = trace.rows.on_device
    ranges = _ranges(trace)
    if not on_device.any():
        return _read_host(trace, ranges, marks) if len(ranges) else None
    return _read_device(trace, trace.rows.select(on_device), ranges, marks)


def _read_device(trace: Trace, rows: Rows, ranges: Rows, marks: HostMarks) -> OperationSource | None:
    rows = rows.select(_of_one_device(trace, rows))
    classes = where_name(rows, trace.names, lambda name: classify_kernel(name, trace.kernel_classes) == _COMMUNICATION)
    communicates = classes & (rows.category == Category.KERNEL)
    if not communicates.any() and len(ranges) == 0:
        return None
    launch = launch_times(trace, rows)
    host = _host_rows(trace)
    of_collectives = LaunchTimes(*(one[communicates] for one in (launch.called, launch.launched, launch.known)))
    chosen, of_collectives = described_by_host(trace, rows.select(communicates), of_collectives, host)
    operations = _join_rows(chosen, ranges)
    by_ranges = _range_launches(trace, ranges)
    called, launched = (np.concatenate((one, by_ranges)) for one in (of_collectives.called, of_collectives.launched))
    order = order_by(called, operations.start_ns)[:MOST_OPERATIONS]
    local, local_launch = rows.select(~communicates), launch.called[~communicates]
    by_launch = order_by(local_launch, local.start_ns)
    local, local_launch = local.take(by_launch), local_launch[by_launch]
    main = local.place == _busiest(local)
    chain, chain_launch = local.select(main), local_launch[main]
    chain_launched = np.maximum.accumulate(launch.launched[~communicates][by_launch][main])
    taken = operations.take(order)
    has_launches = not np.array_equal(launch.called, rows.start_ns)
    on_host = order >= len(chosen)
    taken, part_of = split_batches(trace, taken, called[order], on_host, host, launches=has_launches)
    order = order[part_of]
    waits = find_waits(host, trace.names, rows, launch)
    loaded = join(_union_of(host, trace.names, is_data_loading), marks.loading)
    return OperationSource(
        kind="gpu",
        name=taken.name,
        collective=taken.collective,
        place=taken.place,
        on_host=order >= len(chosen),
        launch_ns=np.maximum.accumulate(launched[order]),
        start_ns=taken.start_ns,
        duration_ns=taken.duration_ns,
        launch_row=_launch_rows(chain_launch, called[order] if has_launches else taken.start_ns),
        row_start_ns=chain.start_ns,
        row_end_ns=_running_end(chain, int(taken.start_ns.min())),
        tolerance_ns=_DEVICE_TOLERANCE_NS,
        busy=union(local.start_ns, local.end_ns),
        data=loaded if waits is None else join(loaded, waits_for_batches(rows, host, trace.names, waits.known)),
        collection=join(_union_of(host, trace.names, is_collection), marks.collection),
        recorded=_recorded(host, trace.names),
        row_launch_ns=chain_launched if has_launches else None,
        waits=waits,
        thread=host.select(host.place == _training_thread(trace, host)),
        local=local,
        local_launch_ns=local_launch,
        overlapped=covered(local.start_ns, union(chosen.start_ns, chosen.end_ns)),
        cut=len(operations) > MOST_OPERATIONS,
        row_name=chain.name,
    )


def _launch_rows(row_launch_ns: Int64s, launch_ns: Int64s) -> Int64s:
    """The number of rows that were launched before each operation: no more than before a later one."""
    rows = np.searchsorted(row_launch_ns, launch_ns).astype(np.int64)
    return np.asarray(np.minimum.accumulate(rows[::-1])[::-1])


def _read_host(trace: Trace, ranges: Rows, marks: HostMarks) -> OperationSource:
    host = _host_rows(trace)
    launched = _range_launches(trace, ranges)
    order = order_by(launched, ranges.start_ns)[:MOST_OPERATIONS]
    taken, taken_launch = ranges.take(order), launched[order]
    wide = where_name(host, trace.names, is_host_annotation) & ~where_name(host, trace.names, is_data_loading)
    works = ((host.category == Category.OPERATOR) | where_name(host, trace.names, is_data_loading)) & ~wide
    thread = _training_thread(trace, host)
    chain = host.select(works & (host.place == thread) & ~where_name(host, trace.names, is_collective_range))
    chain = chain.take(order_by(chain.start_ns, -chain.duration_ns))
    data = join(_union_of(host, trace.names, is_data_loading), marks.loading)
    busy_rows = chain.select(~covered(chain.start_ns, data))
    ends = np.sort(chain.end_ns)
    finished = np.searchsorted(ends, chain.start_ns, side="right")
    first = int(min(taken_launch.min(), chain.start_ns.min())) if len(chain) else int(taken_launch.min())
    before = np.append(
        np.where(finished > 0, ends[np.maximum(finished - 1, 0)], first), ends[-1:] if len(ends) else first
    )
    return OperationSource(
        kind="cpu",
        name=taken.name,
        collective=taken.collective,
        place=taken.place,
        on_host=np.ones(len(order), np.bool_),
        launch_ns=taken_launch,
        start_ns=taken.start_ns,
        duration_ns=taken.duration_ns,
        launch_row=np.searchsorted(chain.start_ns, taken_launch).astype(np.int64),
        row_start_ns=chain.start_ns,
        row_end_ns=np.maximum.accumulate(before),
        tolerance_ns=_HOST_TOLERANCE_NS,
        busy=union(busy_rows.start_ns, busy_rows.end_ns),
        data=data,
        collection=join(_union_of(host, trace.names, is_collection), marks.collection),
        recorded=_recorded(host, trace.names),
        row_launch_ns=None,
        waits=None,
        thread=host.select(host.place == thread),
        local=NO_ROWS,
        local_launch_ns=NO_ROWS.start_ns,
        overlapped=np.zeros(0, np.bool_),
        cut=len(ranges) > MOST_OPERATIONS,
        row_name=chain.name,
    )


def _host_rows(trace: Trace) -> Rows:
    return trace.rows.select(~trace.rows.on_device)


def _union_of(rows: Rows, names: list[str], test: Callable[[str], bool]) -> Union:
    chosen = rows.select(where_name(rows, names, test))
    return union(chosen.start_ns, chosen.end_ns)


def _recorded(host: Rows, names: list[str]) -> Union:
    """The host's recorded work: operators and calls, not the ranges that enclose whole phases."""
    plain = ~where_name(host, names, is_host_annotation)
    # Apart, since each is in order of its starts as a rule.
    operators = host.select(plain & (host.category == Category.OPERATOR))
    operator_times = union(operators.start_ns, operators.end_ns)
    del operators
    calls = host.select(plain & (host.category == Category.RUNTIME))
    return join(operator_times, union(calls.start_ns, calls.end_ns))


def _ranges(trace: Trace) -> Rows:
    """Collectives that run on the host: one range each, on the backend's own thread."""
    rows = trace.rows
    ranges = where_name(rows, trace.names, is_collective_range)
    return rows.select(ranges & ~rows.on_device & (rows.duration_ns > 0))


def _range_launches(trace: Trace, ranges: Rows) -> Int64s:
    """The times at which the training thread handed ranges over: the last call into c10d left, else its own start."""
    rows = trace.rows
    calls = rows.select(
        (rows.category == Category.OPERATOR)
        & where_name(rows, trace.names, lambda name: is_host_communication(name) and not is_collective_range(name))
    )
    calls = calls.select(where_name(calls, trace.names, lambda name: "c10d" in name))
    launched = ranges.start_ns.copy()
    order = np.argsort(ranges.start_ns, kind="stable")
    starts = np.sort(calls.start_ns)
    left = len(starts)
    for position in order[::-1].tolist():
        left = min(left, int(np.searchsorted(starts, ranges.start_ns[position], side="right")))
        if left == 0:
            break
        left -= 1
        launched[position] = starts[left]
    return launched


def _training_thread(trace: Trace, host: Rows) -> int:
    """The place that trains: where most calls into c10d stand, else most operators."""
    calls = where_name(host, trace.names, lambda name: "c10d" in name)
    operators = host.category == Category.OPERATOR
    ranges = where_name(host, trace.names, is_collective_range)
    places = host.place[calls] if calls.any() else host.place[operators & ~ranges]
    return int(np.bincount(places).argmax()) if len(places) else -1


def _of_one_device(trace: Trace, rows: Rows) -> Bools:
    """A rank that drives several devices is followed on the one with the most work."""
    _, owner = trace.owners(rows)
    used = np.flatnonzero(np.bincount(owner))
    return np.asarray(owner == used[np.bincount(owner, rows.duration_ns)[used].argmax()])


def _busiest(local: Rows) -> int:
    """The stream that trains: a copy of the next batch may take longer than all kernels."""
    kernels = local.category == Category.KERNEL
    local = local.select(kernels) if kernels.any() else local
    return int(np.bincount(local.place, local.duration_ns).argmax()) if len(local) else -1


def _running_end(chain: Rows, otherwise: int) -> Int64s:
    first = min(int(chain.start_ns.min()), otherwise) if len(chain) else otherwise
    return np.maximum.accumulate(np.concatenate(([first], chain.end_ns)))


def _join_rows(first: Rows, second: Rows) -> Rows:
    columns = [np.concatenate((getattr(first, c), getattr(second, c))) for c in COLUMNS]
    return Rows(*columns)
