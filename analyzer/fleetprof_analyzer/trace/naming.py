"""Asks a question about names once per name, and answers it for every row."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Final, TypeVar

import numpy as np

from fleetprof_analyzer.trace.trace import Bools, Rows

_ROWS_PER_NAME: Final = 50
_MOST_REMEMBERED: Final = 4096

Answer = TypeVar("Answer")


def remembered(test: Callable[[str], Answer]) -> Callable[[str], Answer]:
    """`test`, which remembers its latest answers: the ranks of a job have the same names, and each is asked often."""
    return lru_cache(maxsize=_MOST_REMEMBERED)(test)


@cache
def matcher(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Tells whether a name holds a match of `pattern`; `remembered`."""
    return remembered(lambda name: pattern.search(name) is not None)


def used_names(rows: Rows) -> list[int]:
    """The numbers of the names that rows have, ascending."""
    numbers: list[int] = np.flatnonzero(np.bincount(rows.name)).tolist() if len(rows) else []
    return numbers


def where_name(rows: Rows, names: Sequence[str], test: Callable[[str], bool]) -> Bools:
    """A mask of the rows whose name passes the test, shape (n,)."""
    # With few names, to look for those that occur would take longer than to ask about all.
    if len(names) * _ROWS_PER_NAME < len(rows):
        chosen = np.fromiter(map(test, names), np.bool_, len(names))
    else:
        chosen = np.zeros(len(names), np.bool_)
        for number in used_names(rows):
            chosen[number] = test(names[number])
    return chosen.take(rows.name) if chosen.any() else np.zeros(len(rows), np.bool_)
