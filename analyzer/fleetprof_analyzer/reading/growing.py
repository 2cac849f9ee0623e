"""Columns that grow while a trace is read.

Guarantees: what is there twice at any time is one column at most, and never all rows; what is reserved ahead is not
touched, so it takes no memory.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace import COLUMNS, NO_ROWS, Int64s, Rows


class GrowingNumbers:
    """One column of numbers of one type."""

    def __init__(self, kind: npt.DTypeLike = np.int64) -> None:
        self._values = np.empty(0, kind)
        self.count = 0

    def append(self, values: npt.NDArray[np.integer]) -> None:
        """Adds values at the end."""
        end = self.count + len(values)
        if end > len(self._values):
            grown = np.empty(max(end, len(self._values) * 3 // 2), self._values.dtype)
            grown[: self.count] = self._values[: self.count]
            self._values = grown
        self._values[self.count : end] = values
        self.count = end

    def values(self) -> npt.NDArray[Any]:
        """All of them, as a view."""
        return self._values[: self.count]


class GrowingRows:
    """The columns of `Rows`."""

    def __init__(self) -> None:
        self._columns = {name: GrowingNumbers(getattr(NO_ROWS, name).dtype) for name in COLUMNS}

    def append(self, rows: Rows) -> None:
        """Adds rows at the end."""
        for name, column in self._columns.items():
            column.append(getattr(rows, name))

    def rows(self) -> Rows:
        """All rows, as views."""
        return Rows(*(column.values() for column in self._columns.values()))


class OperatorIds:
    """PyTorch numbers the operators that run one after the other: how many of them were recorded."""

    _FEWEST = 100

    def __init__(self) -> None:
        self._ids = GrowingNumbers()

    def append(self, ids: Int64s) -> None:
        """Adds the numbers of operators; what is not above 0 is none."""
        self._ids.append(ids[ids > 0])

    def recorded_permille(self) -> int | None:
        """Recorded operators of those that ran; None where there are too few to tell. Orders what it holds."""
        ids = self._ids.values()
        if len(ids) < self._FEWEST:
            return None
        ids.sort()
        distinct = 1 + int(np.count_nonzero(ids[1:] != ids[:-1]))
        return min(1000, 1000 * distinct // int(ids[-1] - ids[0] + 1))
