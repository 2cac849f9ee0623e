"""Rows of a few batches, packed, until they are enough for numpy: its calls take as long as some hundred rows.

Guarantees: no text of an event is kept; of a row less than a hundred bytes are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fleetprof_analyzer.reading.columns.packing import pack_integers, read_integers
from fleetprof_analyzer.reading.columns.vocabulary import PlaceNumbers
from fleetprof_analyzer.reading.event import Scalar
from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s


class PlaceKeys:
    """(process, thread) of each row and, of those of a device, what they say of (device, stream); packed."""

    def __init__(self) -> None:
        self._columns = [bytearray() for _ in range(4)]

    def add(self, *keys: Sequence[Scalar]) -> bool:
        """Adds processes and threads of n rows, devices and streams of m; adds none where one is no integer."""
        packed = [pack_integers(values) for values in keys]
        if None in packed:
            return False
        for column, values in zip(self._columns, packed, strict=True):
            column += values or b""
        return True

    def number(self, places: PlaceNumbers, on_device: Bools) -> Int32s:
        """The rows' numbers. Rows of one place follow each other, so a run of them is looked up once."""
        process, thread, device, stream = map(read_integers, self._columns)
        at_host = ~on_device
        runs = (
            _Runs(at_host, process.compress(at_host), thread.compress(at_host)),
            _Runs(on_device, device, stream),
        )
        numbers = {at: places[key] for at, key in sorted(runs[0].begins + runs[1].begins)}
        found = np.empty(len(on_device), np.int32)
        for run in runs:
            found[run.rows] = np.repeat([numbers[at] for at, _ in run.begins], run.lengths)
        return found


class _Runs:
    """Rows that follow each other with the same key: of each run the first row and its key, and how many they are."""

    def __init__(self, chosen: Bools, first: Int64s, second: Int64s) -> None:
        self.rows = chosen.nonzero()[0]
        new = np.ones(len(first) + 1, np.bool_)
        new[1:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        borders = new.nonzero()[0]
        at = borders[:-1]
        self.lengths = borders[1:] - at
        keys = zip(first[at].tolist(), second[at].tolist(), strict=True)
        self.begins = list(zip(self.rows[at].tolist(), keys, strict=True))


@dataclass(slots=True)
class Pending:
    """Columns of n rows, of which m are of a device; `place` has their numbers where `place_keys` could not take them.

    `collective` and `inputs` have the numbers of those rows, by position, that say one.
    """

    category: bytearray = field(default_factory=bytearray)
    starts: list[bytes] = field(default_factory=list)  # µs, as the text of each batch
    durations: bytearray = field(default_factory=bytearray)  # µs
    name: bytearray = field(default_factory=bytearray)
    place_keys: PlaceKeys = field(default_factory=PlaceKeys)
    place: Int32s | None = None
    sequence_number: bytearray = field(default_factory=bytearray)
    correlation: bytearray = field(default_factory=bytearray)
    external_id: bytearray = field(default_factory=bytearray)
    byte_count: bytearray = field(default_factory=bytearray)  # of the m
    shape: bytearray = field(default_factory=bytearray)  # of the m
    collective: dict[int, int] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
