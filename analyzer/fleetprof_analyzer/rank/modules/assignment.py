"""Assigns the rows of the marked iteration to modules, and to their forward, backward or recomputation.

A row belongs to the innermost mark around it. A node of autograd's graph belongs to the operator that made it, which
has its sequence number; AccumulateGrad has none, and belongs to the node that ran before it on its thread.
Guarantees: pure; nothing is guessed: what two modules could have made belongs to none. Collectives belong to none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.modules.marked_iteration import MarkedRows
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows

_MODULE: Final = re.compile(r"^fleetprof\.module:(\d{1,9}) (.*)$", re.DOTALL)
_NODE: Final = "autograd::engine::evaluate_function: "
_ACCUMULATE: Final = _NODE + "torch::autograd::AccumulateGrad"
_COLLECTIVE: Final = re.compile(r"^(?:c10d::|_c10d_functional::|nccl:|gloo:|mpi:|ucc:|xccl:|record_param_comms)")
NOWHERE: Final = -1
_ROUNDED_NS: Final = 1000  # so much later than what is around it a row may seem to end: traces round to µs
_IS_MARK, _IS_NODE, _IS_COLLECTIVE = 1, 2, 3
_NOTHING: Final = (0, "")


class ModulePhase(IntEnum):
    """The part of an iteration that a row belongs to."""

    FORWARD = 0
    BACKWARD = 1
    RECOMPUTE = 2
    COMMUNICATION = 3


@dataclass(frozen=True, slots=True)
class ModulePath:
    """A module in the module that calls it; `parent` is a number of a path, NOWHERE for a root."""

    parent: int
    name: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """Columns of equal length, one row per row of the host that counts: operators, marks, calls of the runtime.

    `path` numbers `paths`; `own_ns` is a row's time without operators inside it.
    """

    rows: Rows
    paths: list[ModulePath]
    path: Int64s
    phase: Int64s
    own_ns: Int64s
    is_mark: Bools


def assign(marked: MarkedRows) -> Assignment:
    """The rows of the host, each with its module."""
    rows = marked.rows
    host = rows.select((rows.category == Category.OPERATOR) | (rows.category == Category.RUNTIME))
    # A row stands before those inside it.
    host = host.take(np.lexsort((-host.duration_ns, host.start_ns, host.place)))
    parents, own_ns = _nest(host)
    return _Walk(host, marked.names, parents).run(own_ns)


def _nest(rows: Rows) -> tuple[list[int], Int64s]:
    """The operator around each row, NOWHERE for the outermost, and each row's time without operators inside it."""
    starts, ends, places = rows.start_ns.tolist(), rows.end_ns.tolist(), rows.place.tolist()
    is_operator = (rows.category == Category.OPERATOR).tolist()
    own = rows.duration_ns.tolist()
    parents = [NOWHERE] * len(starts)
    stack: list[int] = []
    place = NOWHERE
    for at, start in enumerate(starts):
        if places[at] != place:
            place = places[at]
            stack.clear()
        while stack and ends[stack[-1]] <= start:
            stack.pop()
        for around in reversed(stack):
            if ends[at] <= ends[around] + _ROUNDED_NS:
                parents[at] = around
                if is_operator[at]:
                    own[around] -= min(ends[at], ends[around]) - start
                break
        if is_operator[at]:
            stack.append(at)
    return parents, np.maximum(np.array(own, np.int64), 0)


class _Walk:
    """Carries modules from rows to the rows inside them."""

    def __init__(self, rows: Rows, names: Sequence[str], parents: Sequence[int]) -> None:
        self._rows, self._names, self._parents = rows, names, parents
        self._paths: list[ModulePath] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._by_name: dict[str, int] = {}

    def run(self, own_ns: Int64s) -> Assignment:
        rows = self._rows
        count = len(rows)
        kind, label = self._classify()
        path, phase = [NOWHERE] * count, [int(ModulePhase.FORWARD)] * count
        nodes: list[int] = []
        for at, parent in enumerate(self._parents):
            if parent != NOWHERE:
                path[at], phase[at] = path[parent], phase[parent]
            what = kind[at]
            if what == _IS_MARK:
                path[at], phase[at] = self._enter(label[at], path[at], phase[at])
            elif what == _IS_NODE:
                # Its module is known once all of forward is.
                path[at], phase[at] = -2 - len(nodes), ModulePhase.BACKWARD
                nodes.append(at)
            elif what == _IS_COLLECTIVE:
                path[at], phase[at] = NOWHERE, ModulePhase.COMMUNICATION
        paths, phases = np.array(path, np.int64), np.array(phase, np.int64)
        kinds = np.array(kind, np.int64)
        if nodes:
            modules = self._find_makers(np.array(nodes, np.int64), paths, phases, kinds)
            late = paths < NOWHERE
            paths[late] = modules[-2 - paths[late]]
        return Assignment(rows, self._paths, paths, phases, own_ns, kinds == _IS_MARK)

    def _classify(self) -> tuple[list[int], list[str]]:
        """The kind of each row, and of a mark its module's name."""
        of_name: dict[int, tuple[int, str]] = {}
        for number in set(self._rows.name.tolist()):
            name = self._names[number]
            if match := _MODULE.match(name):
                of_name[number] = _IS_MARK, match[2]
            elif name.startswith(_NODE):
                of_name[number] = _IS_NODE, ""
            elif _COLLECTIVE.match(name):
                of_name[number] = _IS_COLLECTIVE, ""
        is_operator = (self._rows.category == Category.OPERATOR).tolist()
        found = [
            of_name.get(name, _NOTHING) if operator else _NOTHING
            for name, operator in zip(self._rows.name.tolist(), is_operator, strict=True)
        ]
        return [kind for kind, _ in found], [label for _, label in found]

    def _enter(self, name: str, outer: int, phase: int) -> tuple[int, int]:
        """The path of a mark, and its phase: what runs within backward runs again."""
        if phase == ModulePhase.FORWARD:
            return self._number(outer, name), phase
        known = self._by_name.get(name)
        if outer >= 0 and phase == ModulePhase.RECOMPUTE:
            return self._number(outer, name), ModulePhase.RECOMPUTE
        return (self._number(NOWHERE, name) if known is None else known), ModulePhase.RECOMPUTE

    def _number(self, outer: int, name: str) -> int:
        number = self._numbers.get((outer, name))
        if number is None:
            number = self._numbers[outer, name] = len(self._paths)
            self._paths.append(ModulePath(outer, name))
            self._by_name.setdefault(name, number)
        return number

    def _find_makers(self, nodes: Int64s, paths: Int64s, phases: Int64s, kinds: Int64s) -> Int64s:
        """The path of each of autograd's nodes: that of the operator that made it."""
        rows = self._rows
        # Threads that run modules make graphs; what others number has nothing to do with these.
        threads = np.unique(rows.place[kinds == _IS_MARK])
        makes = (
            (rows.detail >= 0) & (kinds == 0) & (phases != ModulePhase.BACKWARD) & (rows.category == Category.OPERATOR)
        )
        makes &= np.isin(rows.place, threads)
        at = np.flatnonzero(makes)
        # Numbers are taken by the next node: of the rows with one number the last made it.
        at = at[np.lexsort((rows.start_ns[at], rows.detail[at]))]
        numbers = rows.detail[at]
        last = np.flatnonzero(np.append(numbers[1:] != numbers[:-1], True)) if len(at) else np.zeros(0, np.int64)
        first = np.append(0, last[:-1] + 1) if len(last) else last
        makers = paths[at[last]]
        if len(last):
            places = rows.place[at]
            several = np.minimum.reduceat(places, first) != np.maximum.reduceat(places, first)
            made = paths[at]
            differ = np.minimum.reduceat(made, first) != np.maximum.reduceat(made, first)
            makers = np.where(several & differ, NOWHERE, makers)
        wanted = self._number_nodes(nodes)
        found = np.searchsorted(numbers[last], wanted)
        hit = (found < len(last)) & (wanted >= 0)
        hit[hit] = numbers[last][found[hit]] == wanted[hit]
        modules = np.full(len(nodes), NOWHERE, np.int64)
        modules[hit] = makers[found[hit]]
        accumulates = {n for n in set(rows.name[nodes].tolist()) if self._names[n].startswith(_ACCUMULATE)}
        before: dict[int, int] = {}
        for position, node in enumerate(nodes.tolist()):
            place = int(rows.place[node])
            if int(rows.name[node]) in accumulates:
                modules[position] = before.get(place, NOWHERE)
            else:
                before[place] = int(modules[position])
        return modules

    def _number_nodes(self, nodes: Int64s) -> Int64s:
        """The sequence numbers of autograd's nodes; a node with hooks says its own in the row inside."""
        detail, names = self._rows.detail, self._names
        numbers = detail[nodes]
        silent = {int(nodes[at]): at for at in np.flatnonzero(numbers < 0)}
        for row in np.flatnonzero(detail >= 0).tolist():
            at = silent.get(self._parents[row])
            if at is not None and names[self._rows.name[nodes[at]]] == _NODE + names[self._rows.name[row]]:
                numbers[at] = detail[row]
        return numbers
