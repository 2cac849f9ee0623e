"""Reads one rank's trace: file object in, `Trace` out.

gunzip -> blocks cut at event borders -> typed decode -> columns. Guarantees: untrusted input is read within `Limits`
(`Refused` names the one that is passed); memory is that of the kept columns plus a few blocks; what can be read is
read, and what is lost is counted. Layouts: plain or gzip, object or bare list, one line or many, µs with or without
decimals, with or without baseTimeNanoseconds, old and new category names, CUDA and ROCm.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.classes import is_collection, is_host_communication
from fleetprof_analyzer.limits import Limits, refuse
from fleetprof_analyzer.problems import Kind, Problems
from fleetprof_analyzer.reading.collective import read_collective
from fleetprof_analyzer.reading.decompress import read_blocks
from fleetprof_analyzer.reading.events import Event, EventArgs, EventStream, Scalar
from fleetprof_analyzer.reading.memory_rows import NAME as MEMORY
from fleetprof_analyzer.reading.memory_rows import MemoryColumns
from fleetprof_analyzer.reading.metadata import read_metadata
from fleetprof_analyzer.reading.nanoseconds import MISSING, parse_microseconds
from fleetprof_analyzer.reading.plausibility import drop_impossible
from fleetprof_analyzer.trace import (
    CATEGORIES,
    COLUMNS,
    NO_ROWS,
    PYTHON_FUNCTION,
    Category,
    Collective,
    Int64s,
    Place,
    Rows,
    Shape,
    Trace,
)

_NAME_CHARACTERS: Final = 2048
_PLACE_CHARACTERS: Final = 64
_MOST_PLACE_KEYS: Final = 100_000
# Traces without a base time: Unix µs since 2001 are absolute, smaller numbers count from somewhere.
_ABSOLUTE_FROM_NS: Final = 10**18
_LARGEST: Final = 1 << 62
_NOTHING_SAID: Final = EventArgs()
_CODES: Final[dict[str | None, int]] = {name: int(category) for name, category in CATEGORIES.items()}
_COLLECTION: Final = int(Category.COLLECTION)
_FEWEST_OPERATORS: Final = 100


def read_trace(file: IO[bytes], source: str, problems: Problems, limits: Limits | None = None) -> Trace:
    """Reads a whole trace. `source` is the name to report it by. Raises Refused, and OSError of the file."""
    limits = limits or Limits()
    stream = EventStream(read_blocks(file, problems, limits), problems, limits, Event)
    columns = _Columns(problems, limits)
    for events in stream:
        columns.add(events)
    metadata = read_metadata(stream.metadata, problems)
    rows = columns.rows()
    absolute = len(rows) > 0 and int(rows.start_ns.min()) >= _ABSOLUTE_FROM_NS
    base_ns = 0 if absolute or metadata.base_ns is None else metadata.base_ns
    rows = replace(rows, start_ns=rows.start_ns + base_ns)
    window_end_ns = None if columns.window_end_ns is None else columns.window_end_ns + base_ns
    rows = drop_impossible(rows, window_end_ns, problems)
    if len(rows) == 0 and not problems.count(Kind.EMPTY_FILE) and not problems.count(Kind.NOT_A_TRACE):
        problems.add(Kind.NO_EVENTS)
    absolute = len(rows) > 0 and int(rows.start_ns.min()) >= _ABSOLUTE_FROM_NS
    return Trace(
        source=source,
        metadata=metadata,
        rows=rows,
        names=list(columns.names),
        places=list(columns.places),
        shapes=list(columns.shapes),
        collectives=list(columns.collectives),
        time_origin="unix" if absolute else "trace",
        window_start_ns=None if columns.window_start_ns is None else columns.window_start_ns + base_ns,
        window_end_ns=window_end_ns,
        memory=columns.memory.rows(base_ns),
        truncated=bool(problems.count(Kind.TRUNCATED) or problems.count(Kind.CORRUPT_GZIP)),
        recorded_permille=columns.recorded_permille(),
        event_count=columns.event_count,
        decoded_bytes=stream.decoded_bytes,
        base_ns=base_ns,
    )


class _Columns:
    """Collects kept rows, one array per batch."""

    def __init__(self, problems: Problems, limits: Limits) -> None:
        self._problems = problems
        self._limits = limits
        self._batches: list[Rows] = []
        self._row_count = 0
        self._name_bytes = 0
        self.names: dict[str, int] = {}
        self.places: dict[Place, int] = {}
        self.shapes: dict[Shape, int] = {}
        self.collectives: dict[Collective, int] = {}
        self._place_keys: dict[tuple[Scalar, Scalar], int] = {}
        self._external_ids: list[Int64s] = []
        self._collects: dict[str, bool] = {}
        self._communicating: list[bool] = []  # by number of a name
        self.event_count = 0
        self.window_start_ns: int | None = None
        self.window_end_ns: int | None = None
        self.memory = MemoryColumns()

    def add(self, events: list[Event]) -> None:
        """Adds one batch. Raises Refused."""
        self.event_count += len(events)
        if self.event_count > self._limits.events:
            raise refuse("the number of events", self._limits.events, "events")
        self._read_instants(events)
        kept = [
            event
            for event in events
            if (event.cat in _CODES or (event.cat == PYTHON_FUNCTION and self._is_collection(event.name)))
            and event.ph == "X"
        ]
        if not kept:
            return
        self._row_count += len(kept)
        if self._row_count > self._limits.kept_rows:
            raise refuse("the number of operators, annotations and kernels", self._limits.kept_rows, "rows")
        start = parse_microseconds([event.ts for event in kept])
        duration = parse_microseconds([event.dur for event in kept])
        names = self.names
        known, number_of = len(names), names.get
        name = [number if (number := number_of(event.name)) is not None else self._name(event.name) for event in kept]
        if len(names) > known:
            self._name_bytes += sum(len(text) for text in list(names)[known:])
            if self._name_bytes > self._limits.name_bytes:
                raise refuse("the names of events together", self._limits.name_bytes, "characters")
        # One plain loop per column: a call per event would take longer than decoding it.
        category = np.array([_CODES.get(event.cat, _COLLECTION) for event in kept], np.int8)
        said = [event.args or _NOTHING_SAID for event in kept]
        self._external_ids.append(_numbers([args.external_id for args in said])[category == Category.OPERATOR])
        rows = Rows(
            category=category,
            name=np.array(name, np.int32),
            place=np.array(self._numbered_places(kept, said, category), np.int32),
            start_ns=start,
            duration_ns=duration,
            correlation=_numbers([args.correlation for args in said]),
            shape=np.array([self._shape(args) if args.grid else -1 for args in said], np.int32),
            collective=np.array(
                [
                    self._collective(number, args) if args.collective or args.dimensions else -1
                    for number, args in zip(name, said, strict=True)
                ],
                np.int32,
            ),
            detail=_numbers([args.bytes if args.sequence_number is None else args.sequence_number for args in said]),
        )
        unreadable = (start == MISSING) | (duration == MISSING)
        if unreadable.any():
            self._problems.add(Kind.BAD_TIMES, kept[int(unreadable.argmax())].name, int(unreadable.sum()))
            rows = rows.select(~unreadable)
        self._batches.append(rows)

    def rows(self) -> Rows:
        """All rows in file order."""
        if not self._batches:
            return NO_ROWS
        # Column by column, so that no more than one of them is there twice.
        waiting = {name: [getattr(batch, name) for batch in self._batches] for name in COLUMNS}
        self._batches.clear()
        return Rows(*(np.concatenate(waiting.pop(name)) for name in COLUMNS))

    def recorded_permille(self) -> int | None:
        """How many of the operators that ran are here: PyTorch numbers them one after the other."""
        ids = np.concatenate(self._external_ids) if self._external_ids else NO_ROWS.start_ns
        ids = ids[ids > 0]
        if len(ids) < _FEWEST_OPERATORS:
            return None
        ids.sort()
        distinct = 1 + int(np.count_nonzero(np.diff(ids)))
        return min(1000, 1000 * distinct // int(ids[-1] - ids[0] + 1))

    def _name(self, name: str) -> int:
        """The number of a name that was not met before, or that is too long to be kept whole."""
        return self.names.setdefault(name[:_NAME_CHARACTERS], len(self.names))

    def _numbered_places(self, kept: list[Event], said: list[EventArgs], category: npt.NDArray[np.int8]) -> list[int]:
        """(device, stream) of device work and (process, thread) of the host's, as numbers."""
        first, second = [event.pid for event in kept], [event.tid for event in kept]
        for at in np.flatnonzero(category <= Category.MEMSET).tolist():
            args = said[at]
            first[at] = first[at] if args.device is None else args.device
            second[at] = second[at] if args.stream is None else args.stream
        known = self._place_keys.get
        keys = zip(first, second, strict=True)
        return [number if (number := known(key)) is not None else self._place(key) for key in keys]

    def _place(self, key: tuple[Scalar, Scalar]) -> int:
        """The number of a place that was not met before (or was met when there were too many to remember)."""
        place = (str(key[0])[:_PLACE_CHARACTERS], str(key[1])[:_PLACE_CHARACTERS])
        number = self.places.setdefault(place, len(self.places))
        if len(self._place_keys) < _MOST_PLACE_KEYS:
            self._place_keys[key] = number
        return number

    def _is_collection(self, name: str) -> bool:
        known = self._collects.get(name)
        if known is None:
            known = is_collection(name)
            if len(self._collects) < _MOST_PLACE_KEYS:
                self._collects[name] = known
        return known

    def _shape(self, args: EventArgs) -> int:
        key = (bytes(args.grid)[:_PLACE_CHARACTERS], bytes(args.block)[:_PLACE_CHARACTERS])
        return self.shapes.setdefault(key, len(self.shapes))

    def _collective(self, name: int, args: EventArgs) -> int:
        if not args.collective and not self._communicates(name):
            return -1
        return self.collectives.setdefault(read_collective(args), len(self.collectives))

    def _communicates(self, name: int) -> bool:
        """Tells whether the name of this number is a collective of the host; each name is looked at once."""
        if name >= len(self._communicating):
            unseen = itertools.islice(self.names, len(self._communicating), None)
            self._communicating += [is_host_communication(text) for text in unseen]
        return self._communicating[name]

    def _read_instants(self, events: Iterable[Event]) -> None:
        memory = []
        for event in events:
            if event.ph != "i":
                continue
            if event.name == MEMORY:
                memory.append(event)
            elif event.name.startswith("Iteration Start"):
                time = int(parse_microseconds([event.ts])[0])
                self.window_start_ns = time if time != MISSING else self.window_start_ns
            elif event.name == "Record Window End":
                time = int(parse_microseconds([event.ts])[0])
                self.window_end_ns = time if time != MISSING else self.window_end_ns
        if memory:
            self._row_count += len(memory)
            if self._row_count > self._limits.kept_rows:
                raise refuse("the number of operators, annotations and kernels", self._limits.kept_rows, "rows")
            self.memory.add(memory)


def _numbers(values: list[Scalar]) -> Int64s:
    """Natural numbers as they are, -1 for anything else. Shape (len(values),)."""
    natural = [value if type(value) is int else -1 for value in values]
    try:
        numbers = np.array(natural, np.int64)
    except OverflowError:
        numbers = np.array([value if -1 <= value < _LARGEST else -1 for value in natural], np.int64)
    return np.where((numbers >= 0) & (numbers < _LARGEST), numbers, -1)
