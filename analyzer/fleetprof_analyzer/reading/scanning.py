"""Reads regular blocks of events with the optional accelerator (`fleetprof_accelerator`), straight into columns.

Guarantees: the same columns as decoding the block's events would give, numbers included; a block that is not plainly
regular is not taken; without the accelerator, or with one that does not load, nothing is taken and everything works.
"""

import ctypes
import logging
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.reading.columns import INSTANTS, LEAST_FRAME_NS, Columns
from fleetprof_analyzer.reading.event import EventArgs, Instant
from fleetprof_analyzer.reading.growing import is_numbered
from fleetprof_analyzer.trace.trace import CATEGORIES, PYTHON_FUNCTION, Category, Int32s, Rows

# An event that is kept has more bytes than these; a block with more rows is not taken.
_FEWEST_BYTES: Final = 48
_MOST_INSTANTS: Final = 1024
_FRAME: Final = 100
_NAMES, _PLACES, _SHAPES, _DEVICES, _KINDS = range(5)
_COLLECTIVE: Final = 1
_UNKNOWN: Final = -2
_ROW_TYPES: Final = {
    "category": np.int8, "name": np.int32, "place": np.int32, "shape": np.int32, "start_ns": np.int64,
    "duration_ns": np.int64, "correlation": np.int64, "detail": np.int64, "external_id": np.int64, "present": np.int8,
    "args_at": np.int32, "args_length": np.int32,
}  # fmt: skip
_MEMORY_TYPES: Final = {
    "memory_device": np.int32, "memory_at_ns": np.int64, "memory_allocated": np.int64, "memory_reserved": np.int64,
}  # fmt: skip
_INSTANT_TYPES: Final = {"instant_at": np.int32, "instant_length": np.int32}
_INSTANTS: Final = msgspec.json.Decoder(list[Instant])
_ARGS: Final = msgspec.json.Decoder(EventArgs)
_SCALAR: Final = msgspec.json.Decoder(int | str)

log = logging.getLogger(__name__)


@cache
def accelerator() -> tuple[Any, Any] | None:
    """The accelerator's module and its compiled functions; None where there is none."""
    try:
        import fleetprof_accelerator
    except ImportError:
        return None
    try:
        return fleetprof_accelerator, fleetprof_accelerator.load()
    except OSError as error:
        log.warning("traces are read without the accelerator: %s", error)
        return None


def make_scanner(columns: Columns) -> "Scanner | None":
    """A scanner into these columns; None where the accelerator is not installed."""
    found = accelerator()
    return None if found is None else Scanner(*found, columns)


class Scanner:
    """Takes blocks of one trace."""

    def __init__(self, module: Any, library: Any, columns: Columns) -> None:
        self._library, self._columns = library, columns
        self._block = module.Block()
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._handle = library.fp_new(int(Category.MEMSET), int(Category.RUNTIME))
        if not self._handle:
            raise MemoryError
        weakref.finalize(self, library.fp_free, self._handle)
        for name, code in (*CATEGORIES.items(), (PYTHON_FUNCTION, _FRAME)):
            assert library.fp_keep_category(self._handle, name.encode(), len(name), code) == 0
        for name in INSTANTS:
            assert library.fp_keep_instant(self._handle, name.encode(), len(name)) == 0
        # By the scanner's number: the reader's own, and of names that of frames what they are.
        self._numbers: list[Int32s] = [np.zeros(0, np.int32) for _ in range(5)]

    def take(self, text: bytes, length: int) -> bool:
        """Adds the events of text[:length], with commas between them, to the columns; false: not taken.

        Raises Refused.
        """
        self._reserve(length // _FEWEST_BYTES + 1)
        count = self._library.fp_scan(self._handle, text, length, self._block)
        if count < 0:
            return False
        columns = self._columns
        columns.settle()
        columns.count_events(self._block.events)
        self._take_instants(text)
        found = self._choose_frames({name: self._arrays[name][:count] for name in _ROW_TYPES})
        name = self._read(_NAMES, found["name"], self._number_name)
        columns.count_rows(len(name))
        category = found["category"]
        shape, shaped = found["shape"], found["shape"] >= 0
        shape[shaped] = self._read(_SHAPES, shape[shaped], self._number_shape)
        rows = Rows(
            category=category,
            name=name,
            place=self._read(_PLACES, found["place"], self._number_place),
            start_ns=found["start_ns"],
            duration_ns=found["duration_ns"],
            correlation=found["correlation"],
            shape=shape,
            collective=self._collectives(text, found, category, name),
            detail=found["detail"],
        )
        columns.append(rows, found["external_id"][is_numbered(category)])
        return True

    def _choose_frames(self, found: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """The rows without those of Python frames that are not kept; those that are have their category."""
        framed = found["category"] == _FRAME
        if not framed.any():
            return found
        kind = self._read(_NAMES, found["name"][framed], self._classify_frame, _KINDS)
        long = found["duration_ns"][framed] >= LEAST_FRAME_NS
        kept = ~framed
        kept[framed] = (kind == Category.COLLECTION) | ((kind == Category.FRAME) & long)
        category = found["category"].copy()
        category[framed] = kind
        return {key: values[kept] for key, values in (found | {"category": category}).items()}

    def _reserve(self, rows: int) -> None:
        if self._block.capacity >= rows:
            return
        for types, count in ((_ROW_TYPES | _MEMORY_TYPES, rows), (_INSTANT_TYPES, _MOST_INSTANTS)):
            for name, kind in types.items():
                self._arrays[name] = np.empty(count, kind)
                setattr(self._block, name, self._arrays[name].ctypes.data)
        self._block.capacity, self._block.instant_capacity = rows, _MOST_INSTANTS

    def _take_instants(self, text: bytes) -> None:
        """What instants say: of memory, and of the window."""
        columns, block = self._columns, self._block
        if block.memories:
            columns.count_rows(block.memories)
            device, at_ns, allocated, reserved = (self._arrays[name][: block.memories] for name in _MEMORY_TYPES)
            number = self._read(_DEVICES, device, self._number_device).astype(np.int64)
            columns.memory.append(at_ns, number, allocated, reserved)
        if block.instants:
            at, length = (self._arrays[name][: block.instants].tolist() for name in _INSTANT_TYPES)
            pieces = [text[first : first + count] for first, count in zip(at, length, strict=True)]
            columns.read_instants(_INSTANTS.decode(b"[" + b",".join(pieces) + b"]"))

    def _read(
        self, kind: int, texts: Int32s, number: Callable[[int, bytes, bytes], int], table: int | None = None
    ) -> Int32s:
        """The reader's numbers of texts, given by the scanner's; new ones are numbered in the order of the rows."""
        table = kind if table is None else table
        known = self._numbers[table]
        count = self._library.fp_text_count(self._handle, kind)
        if count > len(known):
            known = self._numbers[table] = np.concatenate((known, np.full(count - len(known), _UNKNOWN, np.int32)))
        length = ctypes.c_int64()
        for new in dict.fromkeys(texts[known[texts] == _UNKNOWN].tolist()):
            at = self._library.fp_text(self._handle, kind, new, length)
            text = ctypes.string_at(at, length.value)
            known[new] = number(text[0], *text[1:].split(b"\0", 1))
        return known[texts]

    def _number_name(self, _: int, name: bytes, __: bytes) -> int:
        return self._columns.vocabulary.names[name.decode("ascii")]

    def _classify_frame(self, _: int, name: bytes, __: bytes) -> int:
        return self._columns.vocabulary.frames[name.decode("ascii")]

    def _number_place(self, _: int, first: bytes, second: bytes) -> int:
        return self._columns.vocabulary.places[_scalar(first), _scalar(second)]

    def _number_device(self, _: int, kind: bytes, number: bytes) -> int:
        return self._columns.memory.device_number(_scalar(kind), _scalar(number))

    def _number_shape(self, _: int, grid: bytes, block: bytes) -> int:
        return self._columns.vocabulary.shapes.of(grid, block)

    def _collectives(
        self, text: bytes, found: dict[str, npt.NDArray[Any]], category: npt.NDArray[np.int8], name: Int32s
    ) -> Int32s:
        """The collectives of rows that say one, from their arguments."""
        vocabulary, present = self._columns.vocabulary, found["present"]
        collectives = np.full(len(name), -1, np.int32)
        said = np.flatnonzero((present > 0) & (category != Category.RUNTIME))
        communicates = vocabulary.names.communicate(name[said])
        chosen = communicates | ((present[said] & _COLLECTIVE) > 0)
        for at, collective in zip(said[chosen].tolist(), communicates[chosen].tolist(), strict=True):
            begin = int(found["args_at"][at])
            args = _ARGS.decode(text[begin : begin + int(found["args_length"][at])])
            collectives[at] = vocabulary.collectives.of(args, communicates=collective)
        return collectives


def _scalar(token: bytes) -> int | str | None:
    return _SCALAR.decode(token) if token else None
