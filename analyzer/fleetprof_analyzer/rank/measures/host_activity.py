"""The activity of a thread of the host at any time, one thing at a time: the levels of docs/measures.md#idle.

A row's level is its rank in the order of explanations: the wait for data explains an idle GPU better than the operator
around it. Guarantees: pure; `Levels.split` distributes every nanosecond of every piece exactly once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace.classes import is_data_loading, is_host_annotation
from fleetprof_analyzer.trace.intervals import Union, covered_length, join, union
from fleetprof_analyzer.trace.naming import remembered
from fleetprof_analyzer.trace.ordering import distinct
from fleetprof_analyzer.trace.trace import Bools, Category, Int32s, Int64s, Trace


class HostActivity(IntEnum):
    """The explanations of an idle device, the best explanation first."""

    DATA = 0
    BLOCKING = 1
    ALLOCATION = 2
    OPTIMIZER = 3
    RUNTIME = 4
    OPERATOR = 5


_OTHER: Final = -1
_PIECE: Final = 1 << 15
_COPIES: Final = len(HostActivity)  # of a call that copies, until its end is compared with the copy's
_BLOCKING: Final = re.compile(r"Synchronize|^(?:cuda|hip)Memcpy(?:2D|3D|(?:To|From)Symbol|WithStream)?$")
_COPY: Final = re.compile(r"^(?:cuda|hip|cu)Memcpy")
_ALLOCATION: Final = re.compile(
    r"^(?:cuda|hip|cu)(?:Malloc|Free|Host(?:Alloc|Free|Register|Unregister|Malloc)"
    r"|Mem(?:Alloc|Free|Create|Map|Unmap|Release|SetAccess|AddressReserve|AddressFree|HostAlloc))"
)
_OPTIMIZER: Final = re.compile(r"^Optimizer\.(?:step|zero_grad)#")
# More threads than these that launch on one device are a malformed trace: they are taken as one.
_MOST_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class HostRows:
    """The rows of the host that have a level, sorted by `keys` (place and level), shape (n,)."""

    keys: Int32s | npt.NDArray[np.uint16]
    start_ns: Int64s
    end_ns: Int64s
    recorded: frozenset[str]  # processes whose operators or annotations are in the trace

    def at(self, place: int, level: HostActivity) -> slice:
        """The positions of the rows of one thread and level."""
        key = place * len(HostActivity) + level
        # Of the keys' own type: for any other numpy would copy them all.
        first, last = np.searchsorted(self.keys, np.array((key, key + 1), self.keys.dtype))
        return slice(int(first), int(last))


@dataclass(frozen=True, slots=True)
class Levels:
    """The spans of one thread at each level, and of any other that launches on the device."""

    own: Sequence[Union]
    others: Sequence[Union]

    @property
    def blocking(self) -> Union:
        """The spans in which the thread was blocked."""
        return self.own[HostActivity.BLOCKING]

    def split(self, start_ns: Int64s, end_ns: Int64s) -> Int64s:
        """For pieces [start, end), shape (n,): ns of each level, shape (n, len(HostActivity) + 1), the last of none.

        The thread's own levels explain first, then those of the others that launch here.
        """
        parts = np.zeros((len(start_ns), len(HostActivity) + 1), np.int64)
        covering: Union = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        before: Int64s = np.zeros(len(start_ns), np.int64)
        for level, union_of in (
            *zip(HostActivity, self.own, strict=True),
            *zip(HostActivity, self.others, strict=True),
        ):
            if len(union_of[0]) == 0:
                continue
            # One covering at a time: all of them together would take several times the memory of the rows.
            covering = join(covering, union_of)
            inside = covered_length(end_ns, covering) - covered_length(start_ns, covering)
            parts[:, level] += inside - before
            before = inside
        parts[:, len(HostActivity)] = end_ns - start_ns - before
        return parts


@remembered
def _classify(name: str) -> tuple[int, bool]:
    """The meaning of a name by itself: (its level, whether it is a call that copies)."""
    copies = _COPY.search(name) is not None
    if is_data_loading(name):
        return HostActivity.DATA, copies
    if _OPTIMIZER.search(name):
        return HostActivity.OPTIMIZER, copies
    if _BLOCKING.search(name):
        return HostActivity.BLOCKING, copies
    return HostActivity.ALLOCATION if _ALLOCATION.search(name) else _OTHER, copies


def read_host(trace: Trace) -> HostRows:
    """All rows of the host with their levels."""
    rows = trace.rows
    by_name = np.full(len(trace.names), _OTHER, np.int8)
    plain, copies = np.zeros(len(trace.names), np.bool_), np.zeros(len(trace.names), np.bool_)
    for index in np.flatnonzero(np.bincount(rows.name.compress(~rows.on_device))).tolist():
        name = trace.names[index]
        plain[index] = not is_host_annotation(name)
        by_name[index], copies[index] = _classify(name)
    runtime = np.where(by_name > _OTHER, by_name, np.int8(HostActivity.RUNTIME))
    # A look into one table: to choose rows by conditions would take ten times as long.
    table = np.full((len(Category), len(trace.names)), _OTHER, np.int8)
    table[Category.OPERATOR, plain] = HostActivity.OPERATOR
    annotates = (by_name == HostActivity.DATA) | (by_name == HostActivity.OPTIMIZER)
    for category in (Category.OPERATOR, Category.ANNOTATION, Category.COLLECTION):
        table[category, annotates] = by_name[annotates]
    table[Category.RUNTIME] = np.where(copies, _COPIES, runtime)
    levels = np.empty(len(rows), np.int8)
    for at in range(0, len(rows), _PIECE):
        # In pieces: the positions of all rows at once would be the largest array of an analysis.
        piece = slice(at, at + _PIECE)
        levels[piece] = table.ravel().take(rows.category[piece] * np.int64(len(trace.names)) + rows.name[piece])
    copying = np.flatnonzero(levels == _COPIES)
    waits = _outlasts_its_copy(trace, rows.correlation[copying], rows.end_ns[copying])
    levels[copying] = np.where(waits, np.int8(HostActivity.BLOCKING), runtime[rows.name[copying]])
    counted = np.flatnonzero(levels > _OTHER)
    # As many places as rows at most (`TraceLimits.kept_rows`), so 32 bits hold it.
    keys = rows.place[counted] * np.int32(len(HostActivity)) + levels[counted]
    # numpy sorts 16 bits by counting.
    small = keys.astype(np.uint16) if len(trace.places) * len(HostActivity) < np.iinfo(np.uint16).max else keys
    by_key = np.argsort(small, kind="stable")
    counted = counted[by_key]
    recorded = (rows.category == Category.OPERATOR) | (rows.category == Category.ANNOTATION)
    places = np.flatnonzero(np.bincount(rows.place.compress(recorded))).tolist()
    start = rows.start_ns[counted]
    return HostRows(
        keys=small.take(by_key),
        start_ns=start,
        end_ns=start + rows.duration_ns[counted],
        recorded=frozenset(trace.places[place][0] for place in places),
    )


def group_threads(places: Int64s) -> list[list[int]]:
    """The threads (places), those together that are looked at as one."""
    threads: list[int] = distinct(places).tolist()
    return [threads] if len(threads) > _MOST_THREADS else [[thread] for thread in threads]


def unite_levels(host: HostRows, threads: Sequence[int]) -> list[Union]:
    """The spans in which any of the threads was at each level."""
    united = []
    for level in HostActivity:
        here = [host.at(place, level) for place in threads] or [slice(0)]
        united.append(union(_joined(host.start_ns, here), _joined(host.end_ns, here)))
    return united


def _joined(values: Int64s, parts: Sequence[slice]) -> Int64s:
    """The parts one after the other; of a single one no copy."""
    return values[parts[0]] if len(parts) == 1 else np.concatenate([values[part] for part in parts])


def _outlasts_its_copy(trace: Trace, correlation: Int64s, end_ns: Int64s) -> Bools:
    """The calls, by correlation and end, that return only when their copy is over: those of pageable memory do."""
    copies = (trace.rows.category == Category.MEMCPY) & (trace.rows.correlation >= 0)
    if not copies.any():
        return np.zeros(len(correlation), np.bool_)
    of_copy, copied_ns = trace.rows.correlation[copies], trace.rows.end_ns[copies]
    order = np.lexsort((copied_ns, of_copy))
    of_copy, copied_ns = of_copy[order], copied_ns[order]
    at = np.maximum(np.searchsorted(of_copy, correlation, side="right") - 1, 0)
    return np.asarray((of_copy[at] == correlation) & (correlation >= 0) & (end_ns >= copied_ns[at]))
