"""Reads regular blocks of events with the optional accelerator (`fleetprof_accelerator`), straight into columns.

Guarantees: the same columns as decoding the block's events would give, numbers included; a block that is not plainly
regular is not taken; without the accelerator, or with one that does not load, nothing is taken and everything works.
"""

import logging
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np

from fleetprof_analyzer.reading.ascend import tells_of_ascend
from fleetprof_analyzer.reading.columns.columns import INSTANTS, LEAST_FRAME_NS, RowCollector
from fleetprof_analyzer.reading.columns.growing import NUMBERED
from fleetprof_analyzer.reading.columns.vocabulary import LONGEST_INPUTS
from fleetprof_analyzer.reading.event import LEFT_OUT, EventArgs, Instant
from fleetprof_analyzer.trace.trace import CATEGORIES, COLUMNS, NO_ROWS, PYTHON_FUNCTION, VALUED, Category, Rows

# Numpy's calls take as long as some hundred rows; more than these are not there twice.
_ENOUGH_ROWS: Final = 16_000
_FRAME: Final = 100
# Blocks that are searched for another recorder's rows; bare lists, which PyTorch does not write, as a whole.
_LOOK_AT: Final = 8
_INSTANTS: Final = msgspec.json.Decoder(list[Instant])
_ARGS: Final = msgspec.json.Decoder(EventArgs)
_SCALAR: Final = msgspec.json.Decoder(int | str)

log = logging.getLogger(__name__)


@cache
def accelerator() -> Any:
    """The accelerator's class of scanners; None where there is none."""
    try:
        import fleetprof_accelerator
    except ImportError:
        return None
    try:
        return fleetprof_accelerator.load()
    except OSError as error:
        log.warning("traces are read without the accelerator: %s", error)
        return None


def make_scanner(columns: RowCollector) -> "Scanner | None":
    """A scanner into these columns; None where the accelerator is not installed."""
    compiled = accelerator()
    return None if compiled is None else Scanner(compiled, columns)


class Scanner:
    """Takes blocks of one trace. What it has taken stands in the columns after `hand_over`."""

    def __init__(self, compiled: Any, columns: RowCollector) -> None:
        self._columns = columns
        self._numbering = _Numbering(columns)
        categories = {**CATEGORIES, PYTHON_FUNCTION: _FRAME}
        self._compiled = compiled(
            categories=[(name.encode(), int(code)) for name, code in categories.items()],
            instants=[name.encode() for name in INSTANTS],
            last_on_device=int(Category.MEMSET),
            call=int(Category.RUNTIME),
            operator=int(Category.OPERATOR),
            longest_inputs=LONGEST_INPUTS,
            valued=VALUED.encode(),
            frame=_FRAME,
            shortest_frame_ns=LEAST_FRAME_NS,
            frame_kept_long=int(Category.FRAME),
            frame_left_out=LEFT_OUT,
            numbered=[int(category) for category in NUMBERED],
        )
        self._waiting = self._looked = 0

    def take(self, text: bytes, length: int, *, is_bare: bool = False) -> bool:
        """Takes the events of text[:length], with commas between them; false: not taken. `is_bare`: of a bare list.

        Raises LimitExceeded.
        """
        if (is_bare or self._looked < _LOOK_AT) and tells_of_ascend(text, length):
            return False
        self._looked += 1
        scanned = self._compiled.scan(text, length)
        if scanned is None:
            return False
        columns = self._columns
        if not self._waiting:
            columns.settle()
        events, memories, instants = scanned
        columns.count_events(events)
        if memories:
            columns.count_rows(memories)
        if instants:
            pieces = b",".join([text[begin:end] for begin, end in instants])
            columns.read_instants(_INSTANTS.decode(b"[" + pieces + b"]"))
        columns.count_rows(self._compiled.choose(self._numbering.frame))
        self._waiting = self._compiled.add(text, self._numbering)
        if self._waiting >= _ENOUGH_ROWS:
            self.hand_over()
        return True

    def hand_over(self) -> None:
        """Adds the rows that were taken to the columns; to be called before others are added there."""
        if not self._waiting:
            return
        self._waiting = 0
        *columns, operator_ids = self._compiled.hand_over_rows()
        kinds = [getattr(NO_ROWS, name).dtype for name in COLUMNS]
        rows = Rows(*(np.frombuffer(column, kind) for column, kind in zip(columns, kinds, strict=True)))
        self._columns.append(rows, np.frombuffer(operator_ids, np.int64))
        self._columns.memory.append(*(np.frombuffer(column, np.int64) for column in self._compiled.hand_over_memory()))


class _Numbering:
    """The reader's numbers of texts, as the trace writes them; the scanner asks once for each."""

    def __init__(self, columns: RowCollector) -> None:
        self._vocabulary, self._memory = columns.vocabulary, columns.memory

    def name(self, name: bytes) -> tuple[int, bool]:
        """Its number, and whether it is a collective of the host."""
        names = self._vocabulary.names
        number = names[name.decode("ascii")]
        return number, names.communicates(number)

    def frame(self, name: bytes) -> int:
        """The category of the frames of this name, LEFT_OUT where they are not kept."""
        return self._vocabulary.frames[name.decode("ascii")]

    def place(self, first: bytes, second: bytes) -> int:
        return self._vocabulary.places[_scalar(first), _scalar(second)]

    def shape(self, grid: bytes, block: bytes) -> int:
        return self._vocabulary.shapes.of(grid, block)

    def inputs(self, dimensions: bytes, rest: bytes) -> int:
        return self._vocabulary.inputs[dimensions + b"\0" + rest]

    def collective(self, arguments: bytes, communicates: bool) -> int:
        return self._vocabulary.collectives.of(_ARGS.decode(arguments), communicates=communicates)

    def device(self, kind: bytes, number: bytes) -> int:
        return self._memory.device_number(_scalar(kind), _scalar(number))


def _scalar(token: bytes) -> int | str | None:
    return _SCALAR.decode(token) if token else None
