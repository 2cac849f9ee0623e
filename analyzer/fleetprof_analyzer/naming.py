"""Asks a question about names once per name, and answers it for every row."""

from collections.abc import Callable, Sequence

import numpy as np

from fleetprof_analyzer.trace import Bools, Rows


def used_names(rows: Rows) -> list[int]:
    """The numbers of the names that rows have, ascending."""
    numbers: list[int] = np.flatnonzero(np.bincount(rows.name)).tolist() if len(rows) else []
    return numbers


def where_name(rows: Rows, names: Sequence[str], test: Callable[[str], bool]) -> Bools:
    """Which rows have a name that passes the test, shape (n,)."""
    chosen = np.zeros(len(names), np.bool_)
    for number in used_names(rows):
        chosen[number] = test(names[number])
    return np.asarray(chosen[rows.name])
