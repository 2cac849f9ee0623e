"""Packs lists of what was decoded into bytes of numbers, which numpy reads as columns.

`struct.pack` takes less than half the time of numpy or `array` for a list of Python's numbers, and bytes of several
batches are joined for nothing. Guarantees: a value that is not of the documented kind counts as unsaid.
"""

from collections.abc import Iterable, Sequence
from struct import error, pack
from typing import Final

import numpy as np

from fleetprof_analyzer.reading.event import Scalar
from fleetprof_analyzer.trace.trace import Int32s, Int64s

_LARGEST: Final = 1 << 62


def pack_numbers(numbers: Iterable[int], count: int) -> bytes:
    """`count` integers of 32 bits."""
    return pack(f"{count}i", *numbers)


def pack_integers(values: Sequence[Scalar]) -> bytes | None:
    """Integers of 64 bits; None where one of the values is none."""
    try:
        return pack(f"{len(values)}q", *values)
    except error:
        return None


def pack_counts(values: Sequence[Scalar]) -> bytes:
    """Integers of 64 bits as they are, -1 for anything else."""
    packed = pack_integers(values)
    if packed is None:
        packed = pack(f"{len(values)}q", *(value if _is_count(value) else -1 for value in values))
    return packed


def read_numbers(packed: bytes | bytearray) -> Int32s:
    """Reads the numbers that `pack_numbers` has packed. Shape (n,)."""
    return np.frombuffer(packed, np.int32)


def read_integers(packed: bytes | bytearray) -> Int64s:
    """Reads the integers that `pack_integers` has packed. Shape (n,)."""
    return np.frombuffer(packed, np.int64)


def read_counts(packed: bytes | bytearray) -> Int64s:
    """Reads what `pack_counts` has packed: natural numbers as they are, -1 for anything else. Shape (n,)."""
    numbers = read_integers(packed)
    # Negative ones are the largest without a sign.
    return np.where(numbers.view(np.uint64) < _LARGEST, numbers, -1)


def _is_count(value: Scalar) -> bool:
    return type(value) is int and 0 <= value < _LARGEST
