"""Columns as byte planes: the lowest bytes of all rows first, then the next, which compresses as well as zstd would.

Guarantees: little-endian whatever the machine; what is written is read back exactly.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]


def shuffle(columns: Sequence[Column]) -> bytes:
    """The planes of columns of equal length, one column after the other."""
    return b"".join(_planes(column) for column in columns)


def unshuffle(data: bytes, rows: int, types: Sequence[str]) -> list[Column]:
    """Columns of `rows` values of these numpy types. `data` has just as many bytes."""
    columns: list[Column] = []
    at = 0
    for kind in types:
        width = np.dtype(kind).itemsize
        planes = np.frombuffer(data, np.uint8, rows * width, at).reshape(width, rows)
        columns.append(np.ascontiguousarray(planes.T).reshape(-1).view(np.dtype(kind).newbyteorder("<")))
        at += rows * width
    return columns


def row_bytes(types: Sequence[str]) -> int:
    """Bytes of one row in columns of these types."""
    return sum(np.dtype(kind).itemsize for kind in types)


def _planes(column: Column) -> bytes:
    width = column.dtype.itemsize
    little = np.ascontiguousarray(column).astype(column.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(column), width).T.tobytes()
