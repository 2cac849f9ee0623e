"""The content of the time of each segment of a rank's chain: the device's work, data loading, the garbage collector.

Guarantees: the parts of a segment are disjoint and no longer than it; integer nanoseconds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.intervals import Union, covered_length, join, union, without
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows

_FROM_ORDINARY_MEMORY: Final = re.compile(r"HtoD \(Pageable")


@dataclass(frozen=True, slots=True)
class Fill:
    """Columns of one value per operation; the fields are those of operations.Columns."""

    busy_ns: Int64s
    data_ns: Int64s
    collection_ns: Int64s
    pause_ns: Int64s
    quiet_ns: Int64s


@dataclass(frozen=True, slots=True)
class Fillings:
    """The spans of what ran, on the rank's clock; `recorded` is all that its host is known to have done."""

    busy: Union
    data: Union
    collection: Union
    recorded: Union


def waits_for_batches(device: Rows, host: Rows, names: list[str], waits: Union) -> Union:
    """The waits of the host for a batch that its device was given from ordinary memory; `waits`: its calls that wait.

    Copies from pinned memory may bring anything else, such as weights that were put aside.
    """
    copies = device.select(where_name(device, names, lambda name: _FROM_ORDINARY_MEMORY.search(name) is not None))
    if len(copies) == 0:
        return union(copies.start_ns, copies.end_ns)
    # The call that copies waits as well, until the memory may be used again.
    calls = host.select((host.category == Category.RUNTIME) & np.isin(host.correlation, copies.correlation))
    held = join(waits, union(calls.start_ns, calls.end_ns))
    copied = union(copies.start_ns, copies.end_ns)
    return without(copied, without(copied, held))


def add_fills(parts: Sequence[Fill]) -> Fill:
    """Sums, and of the pauses the longest."""
    longest = np.argmax([part.pause_ns for part in parts], axis=0)
    return Fill(
        busy_ns=np.sum([part.busy_ns for part in parts], axis=0),
        data_ns=np.sum([part.data_ns for part in parts], axis=0),
        collection_ns=np.sum([part.collection_ns for part in parts], axis=0),
        pause_ns=np.max([part.pause_ns for part in parts], axis=0),
        quiet_ns=np.take_along_axis(np.array([part.quiet_ns for part in parts]), longest[None], 0)[0],
    )


def fill_segments(start_ns: Int64s, end_ns: Int64s, operation: Int64s, count: int, fillings: Fillings) -> Fill:
    """Splits pieces [start, end) of own time, disjoint and sorted, and adds them up by operation (`count` of them)."""
    busy, recorded = fillings.busy, fillings.recorded
    data = without(fillings.data, busy)
    collection = without(without(fillings.collection, busy), data)

    def add(pieces: Int64s) -> Int64s:
        total = np.zeros(count, np.int64)
        np.add.at(total, operation, pieces)
        return total

    def inside(covering: Union) -> Int64s:
        return add(covered_length(end_ns, covering) - covered_length(start_ns, covering))

    # The gaps: what is left of the pieces without busy time and data loading.
    gap_start, gap_end = without(union(start_ns, end_ns), join(busy, data))
    pause, quiet = np.zeros(count, np.int64), np.zeros(count, np.int64)
    if len(gap_start):
        # Neighbouring pieces touch: cut gaps at the pieces' borders.
        owner = operation[np.maximum(np.searchsorted(start_ns, gap_start, side="right") - 1, 0)]
        length = gap_end - gap_start
        silent = length - (covered_length(gap_end, recorded) - covered_length(gap_start, recorded))
        np.maximum.at(pause, owner, length)
        # Of several gaps as long the last: numpy assigns in order.
        longest = np.flatnonzero(length == pause[owner])
        quiet[owner[longest]] = silent[longest]
    return Fill(inside(busy), inside(data), inside(collection), pause, quiet)
