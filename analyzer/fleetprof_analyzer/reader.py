"""Reads one rank's trace: file object in, `Trace` out.

gunzip -> blocks cut at event borders -> typed decode -> columns. Guarantees: untrusted input is read within `Limits`
(`Refused` names the one that is passed); memory is that of the kept columns plus a few blocks; what can be read is
read, and what is lost is counted. Layouts: plain or gzip, object or bare list, one line or many, µs with or without
decimals, with or without baseTimeNanoseconds, old and new category names, CUDA and ROCm.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Final

import numpy as np

from fleetprof_analyzer.classes import is_collection, is_host_communication
from fleetprof_analyzer.collective import read_collective
from fleetprof_analyzer.decompress import read_blocks
from fleetprof_analyzer.events import Event, EventArgs, EventStream, Scalar
from fleetprof_analyzer.limits import Limits, refuse
from fleetprof_analyzer.metadata import read_metadata
from fleetprof_analyzer.nanoseconds import MISSING, parse_microseconds
from fleetprof_analyzer.plausibility import drop_impossible
from fleetprof_analyzer.problems import Kind, Problems
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
_OPERATORS: Final = frozenset(name for name, category in CATEGORIES.items() if category == Category.OPERATOR)
_FEWEST_OPERATORS: Final = 100


def read_trace(file: IO[bytes], source: str, problems: Problems, limits: Limits | None = None) -> Trace:
    """Reads a whole trace. `source` is the name to report it by. Raises Refused, and OSError of the file."""
    limits = limits or Limits()
    stream = EventStream(read_blocks(file, problems, limits), problems, limits)
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
        truncated=bool(problems.count(Kind.TRUNCATED) or problems.count(Kind.CORRUPT_GZIP)),
        recorded_permille=columns.recorded_permille(),
        event_count=columns.event_count,
        decoded_bytes=stream.decoded_bytes,
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
        self.event_count = 0
        self.window_start_ns: int | None = None
        self.window_end_ns: int | None = None

    def add(self, events: list[Event]) -> None:
        """Adds one batch. Raises Refused."""
        self.event_count += len(events)
        if self.event_count > self._limits.events:
            raise refuse("the number of events", self._limits.events, "events")
        self._find_window(events)
        kept = [
            event
            for event in events
            if event.ph == "X"
            and (event.cat in CATEGORIES or (event.cat == PYTHON_FUNCTION and self._is_collection(event.name)))
        ]
        if not kept:
            return
        self._row_count += len(kept)
        if self._row_count > self._limits.kept_rows:
            raise refuse("the number of operators, annotations and kernels", self._limits.kept_rows, "rows")
        start = parse_microseconds([event.ts for event in kept])
        duration = parse_microseconds([event.dur for event in kept])
        names = self.names
        known = len(names)
        name = [names.setdefault(event.name[:_NAME_CHARACTERS], len(names)) for event in kept]
        if len(names) > known:
            self._name_bytes += sum(len(text) for text in list(names)[known:])
            if self._name_bytes > self._limits.name_bytes:
                raise refuse("the names of events together", self._limits.name_bytes, "characters")
        category = [CATEGORIES.get(event.cat or "", Category.COLLECTION) for event in kept]
        known_place = self._place_keys.get
        place = [
            number if (number := known_place(key)) is not None else self._place(key)
            for key in map(_place_key, kept, category)
        ]
        rows = Rows(
            np.array(category, np.int8),
            np.array(name, np.int32),
            np.array(place, np.int32),
            start,
            duration,
            np.array([_correlation(event.args) for event in kept], np.int64),
            np.array([self._shape(event.args) for event in kept], np.int32),
            np.array([self._collective(event.name, event.args) for event in kept], np.int32),
            np.array([_detail(event.args) for event in kept], np.int64),
        )
        self._external_ids.append(_external_ids(kept))
        unreadable = (start == MISSING) | (duration == MISSING)
        if unreadable.any():
            self._problems.add(Kind.BAD_TIMES, kept[int(unreadable.argmax())].name, int(unreadable.sum()))
            rows = rows.select(~unreadable)
        self._batches.append(rows)

    def rows(self) -> Rows:
        """All rows in file order."""
        if not self._batches:
            return NO_ROWS
        columns = [np.concatenate([getattr(batch, name) for batch in self._batches]) for name in COLUMNS]
        self._batches.clear()
        return Rows(*columns)

    def recorded_permille(self) -> int | None:
        """How many of the operators that ran are here: PyTorch numbers them one after the other."""
        ids = np.concatenate(self._external_ids) if self._external_ids else NO_ROWS.start_ns
        if len(ids) < _FEWEST_OPERATORS:
            return None
        ids = np.unique(ids)
        return min(1000, 1000 * len(ids) // int(ids[-1] - ids[0] + 1))

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

    def _shape(self, args: EventArgs | None) -> int:
        if args is None or not args.grid:
            return -1
        key = (bytes(args.grid)[:_PLACE_CHARACTERS], bytes(args.block)[:_PLACE_CHARACTERS])
        return self.shapes.setdefault(key, len(self.shapes))

    def _collective(self, name: str, args: EventArgs | None) -> int:
        if args is None or not (args.collective or (args.dimensions and is_host_communication(name))):
            return -1
        return self.collectives.setdefault(read_collective(args), len(self.collectives))

    def _find_window(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.ph != "i":
                continue
            if event.name.startswith("Iteration Start"):
                time = int(parse_microseconds([event.ts])[0])
                self.window_start_ns = time if time != MISSING else self.window_start_ns
            elif event.name == "Record Window End":
                time = int(parse_microseconds([event.ts])[0])
                self.window_end_ns = time if time != MISSING else self.window_end_ns


def _correlation(args: EventArgs | None) -> int:
    number = None if args is None else args.correlation
    return number if isinstance(number, int) and 0 <= number < 1 << 62 else -1


def _detail(args: EventArgs | None) -> int:
    if args is None:
        return -1
    number = args.bytes if args.sequence_number is None else args.sequence_number
    return number if isinstance(number, int) and 0 <= number < 1 << 62 else -1


def _external_ids(events: Iterable[Event]) -> Int64s:
    """The numbers of operators that have one."""
    said = [e.args.external_id for e in events if e.args is not None and e.args.external_id and e.cat in _OPERATORS]
    return np.array([n for n in said if isinstance(n, int) and 0 < n < 1 << 62], np.int64)


def _place_key(event: Event, category: Category) -> tuple[Scalar, Scalar]:
    """(device, stream) of device work, (process, thread) of the host's."""
    args = event.args
    if args is None or category > Category.MEMSET:
        return event.pid, event.tid
    return (
        event.pid if args.device is None else args.device,
        event.tid if args.stream is None else args.stream,
    )
