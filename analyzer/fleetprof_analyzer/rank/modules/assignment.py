"""Assigns the rows of the marked iteration to modules, and to their forward, backward or recomputation.

A row belongs to the innermost mark around it. A node of autograd's graph belongs to the operator that made it, which
has its sequence number. Guarantees: pure; nothing is guessed: what two modules could have made belongs to none.
Collectives belong to none.
"""

from dataclasses import dataclass

import numpy as np

from fleetprof_analyzer.rank.modules.kinds import ModulePhase, RowKind, classify
from fleetprof_analyzer.rank.modules.makers import find_makers
from fleetprof_analyzer.rank.modules.marked_iteration import MarkedRows
from fleetprof_analyzer.rank.modules.nesting import NOWHERE, nest, sort_host
from fleetprof_analyzer.trace.trace import Bools, Int64s, Rows


@dataclass(frozen=True, slots=True)
class ModulePath:
    """A module in the module that calls it; `parent` is a number of a path, NOWHERE for a root."""

    parent: int
    name: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """Columns of equal length, one row per row of the host that counts: operators, marks, calls of the runtime.

    `path` numbers `paths`; `own_ns` is a row's time without operators inside it; `parents` are the rows around.
    """

    rows: Rows
    paths: list[ModulePath]
    path: Int64s
    phase: Int64s
    own_ns: Int64s
    is_mark: Bools
    parents: list[int]


def assign(marked: MarkedRows) -> Assignment:
    """The rows of the host, each with its module."""
    rows = sort_host(marked.rows)
    parents, own_ns = nest(rows)
    kinds, labels = classify(rows, marked.names)
    paths = _Paths()
    path, phase = [NOWHERE] * len(rows), [int(ModulePhase.FORWARD)] * len(rows)
    nodes: list[int] = []
    for at, (parent, kind, name) in enumerate(zip(parents, kinds.tolist(), rows.name.tolist(), strict=True)):
        if parent != NOWHERE:
            path[at], phase[at] = path[parent], phase[parent]
        if kind == RowKind.MARK:
            path[at], phase[at] = paths.enter(labels[name], path[at], phase[at])
        elif kind == RowKind.NODE:
            # Its module is known once all of forward is.
            path[at], phase[at] = -2 - len(nodes), ModulePhase.BACKWARD
            nodes.append(at)
        elif kind == RowKind.COLLECTIVE:
            path[at], phase[at] = NOWHERE, ModulePhase.COMMUNICATION
    found, phases = np.array(path, np.int64), np.array(phase, np.int64)
    is_mark = kinds == RowKind.MARK
    owners = find_makers(
        rows, marked.names, parents, np.array(nodes, np.int64),
        modules=found, phases=phases, kinds=kinds, threads=np.unique(rows.place[is_mark]),
    )  # fmt: skip
    late = found < NOWHERE
    found[late] = owners[-2 - found[late]]
    return Assignment(rows, paths.listed, found, phases, own_ns, is_mark, parents)


class _Paths:
    """The paths that marks have, numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.listed: list[ModulePath] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._by_name: dict[str, int] = {}

    def enter(self, name: str, outer: int, phase: int) -> tuple[int, int]:
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
            number = self._numbers[outer, name] = len(self.listed)
            self.listed.append(ModulePath(outer, name))
            self._by_name.setdefault(name, number)
        return number
