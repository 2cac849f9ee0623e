"""Operations as an alignment compares them: the outermost operators, and those inside what runs modules or autograd.

An operator whose calls hold marks or nodes of autograd in the marked iteration (a node that computes modules again, a
function of the user's) is open: what is inside it is compared one by one. So one unit is in one module.
Guarantees: pure; a unit stands before those inside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleetprof_analyzer.rank.modules.kinds import RowKind
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows


@dataclass(frozen=True, slots=True)
class Units:
    """Columns of equal length: the row of each unit, ascending, and the mark around it (NOWHERE: none)."""

    row: Int64s
    mark: Int64s

    def of_place(self, rows: Rows, place: int) -> "Units":
        """The units on one thread."""
        mask = rows.place[self.row] == place
        return Units(self.row[mask], self.mark[mask])


def find_open(rows: Rows, parents: Sequence[int], kinds: Int64s) -> set[int]:
    """The names of operators that have marks or nodes inside, but marks."""
    of_name: set[int] = set()
    seen: set[int] = set()
    names, kind_of = rows.name.tolist(), kinds.tolist()
    for at in np.flatnonzero((kinds == RowKind.MARK) | (kinds == RowKind.NODE)).tolist():
        around = parents[at]
        while around != NOWHERE and around not in seen:
            seen.add(around)
            if kind_of[around] != RowKind.MARK:
                of_name.add(names[around])
            around = parents[around]
    return of_name


def find_units(rows: Rows, parents: Sequence[int], kinds: Int64s, opened: set[int], launched: Int64s) -> Units:
    """`launched`: correlations of device work, sorted; a call that launched some outside of operators is a unit."""
    is_mark = kinds == RowKind.MARK
    is_open = np.isin(rows.name, np.fromiter(opened, np.int32, len(opened))) & (rows.category == Category.OPERATOR)
    is_clear = is_mark | is_open
    around = np.array(parents, np.int64) if len(rows) else np.zeros(0, np.int64)
    is_outer = (around == NOWHERE) | is_clear[around]
    counts = (rows.category == Category.OPERATOR) | (
        (rows.category == Category.RUNTIME) & (rows.correlation >= 0) & _is_in(rows.correlation, launched)
    )
    at = np.flatnonzero(is_outer & counts & ~is_mark)
    marks = is_mark.tolist()
    nearest: list[int] = []
    for row in at.tolist():
        outer = parents[row]
        while outer != NOWHERE and not marks[outer]:
            outer = parents[outer]
        nearest.append(outer)
    return Units(at, np.array(nearest, np.int64))


def _is_in(numbers: Int64s, among: Int64s) -> Bools:
    if not len(among):
        return np.zeros(len(numbers), np.bool_)
    found = np.searchsorted(among, numbers)
    return np.asarray(among[np.minimum(found, len(among) - 1)] == numbers)
