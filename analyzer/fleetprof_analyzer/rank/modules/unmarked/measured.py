"""Assigns the operations of measured iterations, which have no marks, to the modules of the marked one.

The operations of each iteration are aligned with those of the marked one, thread by thread. What matches is of the same
module; what does not is of the module whose call is around both neighbors that match, and of none inside it; without
such a call it is of none. Backward follows by sequence numbers.
Guarantees: pure; nothing is guessed: an operation that several could be (of equal layers one is left out by chance)
matches none, in no iteration; nor does one of a layer beside an equal one that the marked iteration did not call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.modules.assignment import Assignment
from fleetprof_analyzer.rank.modules.kinds import ModulePhase, RowKind, classify
from fleetprof_analyzer.rank.modules.makers import find_makers
from fleetprof_analyzer.rank.modules.nesting import NOWHERE, nest, sort_host
from fleetprof_analyzer.rank.modules.unmarked.alignment import OperationAlignment, align
from fleetprof_analyzer.rank.modules.unmarked.units import Units, find_open, find_units
from fleetprof_analyzer.trace.trace import Bools, Int64s, Rows

Bounds = Sequence[tuple[int, int]]
_SHORTEST_RUN: Final = 4  # fewer that match in a row may match by chance


@dataclass(frozen=True, slots=True)
class MeasuredRows:
    """Columns of equal length, one row per row of the host in the iterations that could be aligned.

    `path`: a number of the marked assignment's paths; `is_inside`: somewhere inside it, and not known where;
    `is_unmatched`: in a module or none, which is not known. `is_known`: of each iteration and path, whether all
    that the marked iteration has there matches, shape (iterations, paths); `own_known` without modules inside.
    """

    rows: Rows
    own_ns: Int64s
    path: Int64s
    phase: Int64s
    is_inside: Bools
    is_unmatched: Bools
    iteration: Int64s
    is_known: Bools
    own_known: Bools


def assign_measured(
    rows: Rows,
    names: Sequence[str],
    bounds: Bounds,
    marked: Assignment,
    launched: tuple[Int64s, Int64s],
    alike: set[str],
) -> MeasuredRows:
    """`rows` and `names`: of the trace without the marked iteration; `bounds` of its iterations, ascending.

    `launched`: sorted correlations of device work in the marked iteration, and in the trace. `alike`: `find_alike`.
    """
    host = sort_host(rows)
    starts = np.array([begin for begin, _ in bounds], np.int64)
    ends = np.array([end for _, end in bounds], np.int64)
    iteration = np.searchsorted(starts, host.start_ns, side="right") - 1
    inside = (iteration >= 0) & (host.start_ns < ends[np.maximum(iteration, 0)])
    host, iteration = host.select(inside), iteration[inside]
    parents, own_ns = nest(host)
    kinds, _ = classify(host, names)
    pattern = _Pattern(marked, names, launched[0], alike)
    units = find_units(host, parents, kinds, pattern.opened, launched[1])
    claims = pattern.claim(host, units, iteration, len(bounds))
    path, phase = _spread(host, names, parents, kinds, units, claims)
    count = len(marked.paths)
    is_strange = ~np.isin(host.place, np.unique(marked.rows.place)) & (path == NOWHERE)
    is_unmatched = (path == 2 * count) | (is_strange & (phase == ModulePhase.FORWARD))
    return MeasuredRows(
        host, own_ns, np.where(is_unmatched, NOWHERE, np.where(path >= count, path - count, path)), phase,
        (path >= count) & ~is_unmatched, is_unmatched, iteration, claims.is_known, claims.own_known,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Claims:
    """The path and phase of each unit. From the count of paths on: inside a path; twice the count: unmatched."""

    path: Int64s
    phase: Int64s
    is_known: Bools
    own_known: Bools
    threads: Int64s


class _Pattern:
    """The marked iteration as sequences of units, one for each thread that ran modules."""

    def __init__(self, marked: Assignment, names: Sequence[str], launched: Int64s, alike: set[str]) -> None:
        kinds, _ = classify(marked.rows, names)
        self.opened = find_open(marked.rows, marked.parents, kinds)
        self._marked = marked
        self._is_alike: list[bool] = []  # by path, with a last one for NOWHERE
        for one in marked.paths:
            around = one.parent != NOWHERE and self._is_alike[one.parent]
            self._is_alike.append(around or one.name in alike)
        self._is_alike.append(False)
        self._is_node = kinds == RowKind.NODE
        units = find_units(marked.rows, marked.parents, kinds, self.opened, launched)
        self._threads = np.unique(marked.rows.place[marked.is_mark]).astype(np.int64)
        self._units = {place: units.of_place(marked.rows, place) for place in self._threads.tolist()}

    def claim(self, rows: Rows, units: Units, iteration: Int64s, count: int) -> _Claims:
        """Finds the modules of the units of `count` iterations."""
        paths = len(self._marked.paths)
        claims = _Claims(
            np.full(len(units.row), NOWHERE, np.int64), np.zeros(len(units.row), np.int64),
            np.ones((count, paths), np.bool_), np.ones((count, paths), np.bool_), self._threads,
        )  # fmt: skip
        for place, pattern in self._units.items():
            of_place = np.flatnonzero(rows.place[units.row] == place)
            number_of = iteration[units.row[of_place]]
            wanted = self._marked.rows.name[pattern.row].astype(np.int64)
            known: dict[bytes, OperationAlignment | None] = {}
            found: list[tuple[int, Int64s, OperationAlignment | None]] = []
            for number in range(count):
                at = of_place[number_of == number]
                operations = rows.name[units.row[at]].astype(np.int64)
                key = operations.tobytes()
                if key not in known:
                    known[key] = align(wanted, operations)
                found.append((number, at, known[key]))
            doubt = _Doubt([one for one in known.values() if one is not None], self._list_alike(pattern))
            for number, at, one in found:
                if one is None:
                    claims.path[at] = 2 * paths
                    claims.is_known[number] = claims.own_known[number] = False
                else:
                    self._place(pattern, doubt.settle(one), at, number, claims)
        return claims

    def _list_alike(self, units: Units) -> Bools:
        return np.array(self._is_alike, np.bool_)[self._marked.path[units.row]]

    def _place(self, pattern: Units, one: OperationAlignment, at: Int64s, number: int, claims: _Claims) -> None:
        """Fills in what one iteration's units on one thread are."""
        is_sure = one.partner >= 0
        row = pattern.row[one.partner[is_sure]]
        claims.path[at[is_sure]] = self._marked.path[row]
        claims.phase[at[is_sure]] = self._marked.phase[row]
        ranges: dict[tuple[int, int], list[int]] = {}
        for unit in np.flatnonzero(~is_sure).tolist():
            ranges.setdefault((int(one.low[unit]), int(one.high[unit])), []).append(int(at[unit]))
        for (low, high), here in ranges.items():
            mark = self._find_around(pattern, low, high)
            outer = NOWHERE if mark == NOWHERE else int(self._marked.path[mark])
            paths = len(self._marked.paths)
            claims.path[here] = 2 * paths if outer == NOWHERE else paths + outer
            claims.phase[here] = ModulePhase.FORWARD if mark == NOWHERE else self._marked.phase[mark]
            self._leave_untold(pattern.row[max(low, 0) : high + 1], outer, number, claims)

    def _leave_untold(self, rows: Int64s, outer: int, number: int, claims: _Claims) -> None:
        """Notes the modules inside `outer` that may have more than what matches."""
        if outer != NOWHERE:
            claims.own_known[number, outer] = False
        # Of a node the sequence number tells.
        for found in np.unique(self._marked.path[rows[~self._is_node[rows]]]).tolist():
            path = found
            while path not in (NOWHERE, outer):
                claims.is_known[number, path] = claims.own_known[number, path] = False
                path = self._marked.paths[path].parent

    def _find_around(self, pattern: Units, low: int, high: int) -> int:
        """The innermost mark around two units and all between; none is around an end of the sequence."""
        if low < 0 or high >= len(pattern.row):
            return NOWHERE
        marks = set(self._outward(int(pattern.mark[low])))
        both = (mark for mark in self._outward(int(pattern.mark[high])) if mark in marks)
        return next((mark for mark in both if not self._is_alike[self._marked.path[mark]]), NOWHERE)

    def _outward(self, mark: int) -> list[int]:
        found = []
        while mark != NOWHERE:
            if self._marked.is_mark[mark]:
                found.append(mark)
            mark = self._marked.parents[mark]
        return found


class _Doubt:
    """Units of the marked iteration that are doubtful, by all alignments with it: what is in one is in all."""

    def __init__(self, alignments: Sequence[OperationAlignment], is_alike: Bools) -> None:
        count = len(is_alike)
        self._is_doubtful = is_alike.copy()
        step = np.zeros(count + 2, np.int64)  # +1 where a range of which nothing can be told apart begins
        for one in alignments:
            self._is_doubtful |= one.is_doubtful
            mixed = (one.partner < 0) & (one.high >= 0) & (one.low < count) & (one.high > one.low)
            np.add.at(step, np.maximum(one.low[mixed], 0), 1)
            np.add.at(step, np.minimum(one.high[mixed], count - 1), -1)
        joined = np.cumsum(step)[:count] > 0  # with the next one
        places = np.arange(count)
        self._begin = np.maximum.accumulate(np.where(np.append(False, joined[:-1]), 0, places)) if count else places
        self._end = np.minimum.accumulate(np.where(joined, count, places)[::-1])[::-1] if count else places

    def settle(self, one: OperationAlignment) -> OperationAlignment:
        """The alignment without pairs that are in doubt; their ranges and those of others are as wide as the doubt."""
        partner = one.partner
        if len(partner):
            partner = _keep_runs(np.where((partner >= 0) & self._is_doubtful[partner], -1, partner), one.partner)
        count = len(self._is_doubtful)
        low, high = one.low.copy(), one.high.copy()
        is_lost = (partner < 0) & (one.partner >= 0) & ~self._is_doubtful[one.partner]
        if is_lost.any():
            known = np.where(partner >= 0, partner, -1)
            low[is_lost] = np.maximum.accumulate(known)[is_lost]
            known = np.where(partner >= 0, partner, count)
            high[is_lost] = np.minimum.accumulate(known[::-1])[::-1][is_lost]
        low[low >= 0] = self._begin[low[low >= 0]]
        high[high < count] = self._end[high[high < count]]
        return OperationAlignment(partner, low, high, self._is_doubtful)


def _keep_runs(partner: Int64s, paired: Int64s) -> Int64s:
    """The pairs in runs, of neighbors in both sequences, that are long enough; `paired`: with those in doubt."""
    at = np.flatnonzero(paired >= 0)
    if not len(at):
        return partner
    begins = np.append(True, (np.diff(at) != 1) | (np.diff(paired[at]) != 1))
    run = np.cumsum(begins) - 1
    length = np.bincount(run)
    kept = partner.copy()
    if len(length) > 1:
        kept[at[length[run] < _SHORTEST_RUN]] = -1
    return kept


def _spread(
    rows: Rows, names: Sequence[str], parents: Sequence[int], kinds: Int64s, units: Units, claims: _Claims
) -> tuple[Int64s, Int64s]:
    """Path and phase of each row, from those of units."""
    on_thread = np.isin(rows.place[units.row], claims.threads)
    unit_of = np.full(len(rows), -1, np.int64)
    unit_of[units.row[on_thread]] = np.flatnonzero(on_thread)
    paths_of, phases_of = claims.path.tolist(), claims.phase.tolist()
    path, phase = [NOWHERE] * len(rows), [int(ModulePhase.FORWARD)] * len(rows)
    nodes: list[int] = []
    for at, (parent, kind, unit) in enumerate(zip(parents, kinds.tolist(), unit_of.tolist(), strict=True)):
        if parent != NOWHERE:
            path[at], phase[at] = path[parent], phase[parent]
        if kind == RowKind.NODE:
            path[at], phase[at] = -2 - len(nodes), ModulePhase.BACKWARD
            nodes.append(at)
        elif kind == RowKind.COLLECTIVE:
            path[at], phase[at] = NOWHERE, ModulePhase.COMMUNICATION
        elif unit >= 0 and phase[at] != ModulePhase.COMMUNICATION:
            path[at] = paths_of[unit]
            phase[at] = max(phase[at], phases_of[unit])
    found, phases = np.array(path, np.int64), np.array(phase, np.int64)
    owners = find_makers(
        rows, names, parents, np.array(nodes, np.int64),
        modules=found, phases=phases, kinds=kinds, threads=claims.threads,
    )  # fmt: skip
    late = found < NOWHERE
    found[late] = owners[-2 - found[late]]
    return found, phases
