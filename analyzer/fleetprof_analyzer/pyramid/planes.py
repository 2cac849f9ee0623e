"""Columns as byte planes: the lowest bytes of all rows first, then the next, which compresses as well as zstd would.

Guarantees: little-endian whatever the machine.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]


def shuffle(columns: Sequence[Column]) -> bytes:
    """The planes of columns of equal length, one column after the other."""
    return b"".join(_planes(column) for column in columns)


def _planes(column: Column) -> bytes:
    width = column.dtype.itemsize
    little = np.ascontiguousarray(column).astype(column.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(column), width).T.tobytes()
