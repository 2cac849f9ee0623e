"""Columns that grow while a trace is read.

Guarantees: what is there twice at any time is one column at most, and never all rows; what is reserved ahead is not
touched, so it takes no memory.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace.trace import COLUMNS, NO_ROWS, Bools, Category, Int64s, Rows

NUMBERED: Final = (Category.OPERATOR, Category.ANNOTATION)
"""What PyTorch numbers as it begins: operators, and annotations from the same blocks of numbers."""


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
    """`Rows` to which more are appended."""

    def __init__(self) -> None:
        self._columns = {name: GrowingNumbers(getattr(NO_ROWS, name).dtype) for name in COLUMNS}

    def append(self, rows: Rows) -> None:
        """Adds rows at the end."""
        for name, column in self._columns.items():
            column.append(getattr(rows, name))

    def rows(self) -> Rows:
        """All rows so far, as views of what they grow in."""
        return Rows(*(column.values() for column in self._columns.values()))


def is_numbered(category: npt.NDArray[np.int8]) -> Bools:
    """A mask of the rows that are operators or annotations: PyTorch numbers these as they begin."""
    operators, annotations = NUMBERED
    return np.asarray((category == operators) | (category == annotations))


class OperatorIds:
    """PyTorch numbers operators and annotations as they begin: how many of them were recorded.

    Each thread takes blocks of 512 numbers and fills them in order, so the end of a thread's last block is used by
    nobody. What is missing lies before a block's last number, or is a whole block. (Before PyTorch 1.12 there were no
    blocks: one number followed the other, and the same holds.)
    """

    _FEWEST = 100
    _BLOCK = 512

    def __init__(self) -> None:
        self._ids = GrowingNumbers()

    def append(self, ids: Int64s) -> None:
        """Adds the numbers of operators and annotations; what is not above 0 is none."""
        self._ids.append(ids[ids > 0])

    def recorded_permille(self) -> int | None:
        """The recorded share of what ran; None where there is too little to tell. Orders what it holds."""
        ids = self._ids.values()
        if len(ids) < self._FEWEST:
            return None
        ids.sort()
        block = (ids - 1) // self._BLOCK
        last = ids[np.append(block[1:] != block[:-1], True)]
        unused = int((-last[:-1] % self._BLOCK).sum())
        ran = int(ids[-1] - ids[0] + 1) - unused
        distinct = 1 + int(np.count_nonzero(ids[1:] != ids[:-1]))
        return min(1000, 1000 * distinct // ran)
