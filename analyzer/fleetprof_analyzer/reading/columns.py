"""Decoded events into columns: which are kept, and what of them.

Guarantees: rows keep the order of the file; a value that is not of the documented kind counts as unsaid; `Refused`
where a limit is passed.
"""

from array import array
from collections.abc import Sequence
from itertools import compress
from typing import Final, cast

import numpy as np

from fleetprof_analyzer.limits import Limits, refuse
from fleetprof_analyzer.problems import Kind, Problems
from fleetprof_analyzer.reading.event import AnyEvent, Event, EventArgs, Instant, Scalar
from fleetprof_analyzer.reading.growing import GrowingRows, OperatorIds
from fleetprof_analyzer.reading.memory_rows import NAME as MEMORY
from fleetprof_analyzer.reading.memory_rows import MemoryColumns
from fleetprof_analyzer.reading.nanoseconds import MISSING, parse_microseconds, read_durations
from fleetprof_analyzer.reading.vocabulary import Vocabulary
from fleetprof_analyzer.trace import CATEGORIES, PYTHON_FUNCTION, Bools, Category, Int32s, Int64s, Rows

INSTANTS: Final = ("Iteration Start", "Record Window End")
_LARGEST: Final = 1 << 62
_NOTHING_SAID: Final = EventArgs()
_LEFT_OUT: Final = 255
_FRAME: Final = 254
_INSTANT: Final = 253
_CODES: Final[dict[str | int | None, int]] = {
    **{name: int(category) for name, category in CATEGORIES.items()},
    PYTHON_FUNCTION: _FRAME,
    Instant.cat: _INSTANT,
}


class Columns:
    """Collects kept rows, one batch of events after the other."""

    def __init__(self, problems: Problems, limits: Limits) -> None:
        self._problems = problems
        self._limits = limits
        self._rows = GrowingRows()
        self._operator_ids = OperatorIds()
        self._row_count = 0
        self.vocabulary = Vocabulary(limits)
        self.event_count = 0
        self.window_start_ns: int | None = None
        self.window_end_ns: int | None = None
        self.memory = MemoryColumns()

    def add(self, events: list[AnyEvent]) -> None:
        """Adds one batch. Raises Refused."""
        self.count_events(len(events))
        codes = self._choose(events)
        instants = np.flatnonzero(codes == _INSTANT).tolist()
        if instants:
            self.read_instants(cast(list[Instant], [events[at] for at in instants]))
        mask = codes < _INSTANT
        kept = cast(list[Event], list(compress(events, mask.tolist())))
        if not kept:
            return
        self.count_rows(len(kept))
        category = codes[mask].astype(np.int8)
        # One plain loop per column: a call per event would take longer than decoding it.
        start = parse_microseconds([event.ts for event in kept])
        duration = read_durations([event.dur for event in kept])
        said = [event.args or _NOTHING_SAID for event in kept]
        names = list(map(self.vocabulary.names.__getitem__, [event.name for event in kept]))
        name = np.array(names, np.int32)
        on_device, calls = category <= Category.MEMSET, category == Category.RUNTIME
        host = ~(on_device | calls)
        of_device, of_host = list(compress(said, on_device.tolist())), list(compress(said, host.tolist()))
        detail = np.full(len(kept), -1, np.int64)
        detail[on_device] = _numbers([args.bytes for args in of_device])
        detail[host] = _numbers([args.sequence_number for args in of_host])
        correlation = np.full(len(kept), -1, np.int64)
        correlation[on_device] = _numbers([args.correlation for args in of_device])
        correlation[calls] = _numbers([args.correlation for args in compress(said, calls.tolist())])
        operators = category[host] == Category.OPERATOR
        ids = _numbers([args.external_id for args in compress(of_host, operators.tolist())])
        shape = np.full(len(kept), -1, np.int32)
        shape[on_device] = self._number_shapes(of_device)
        rows = Rows(
            category=category,
            name=name,
            place=self._number_places(kept, said, on_device),
            start_ns=start,
            duration_ns=duration,
            correlation=correlation,
            shape=shape,
            collective=self._number_collectives(said, name, ~calls),
            detail=detail,
        )
        unreadable = (start == MISSING) | (duration == MISSING)
        if unreadable.any():
            self._problems.add(Kind.BAD_TIMES, kept[int(unreadable.argmax())].name, int(unreadable.sum()))
            rows = rows.select(~unreadable)
        self.append(rows, ids)

    def count_events(self, count: int) -> None:
        """Counts events that were decoded, kept or not. Raises Refused."""
        self.event_count += count
        if self.event_count > self._limits.events:
            raise refuse("the number of events", self._limits.events, "events")

    def count_rows(self, count: int) -> None:
        """Counts rows about to be kept. Raises Refused."""
        self._row_count += count
        if self._row_count > self._limits.kept_rows:
            raise refuse("the number of operators, annotations and kernels", self._limits.kept_rows, "rows")

    def append(self, rows: Rows, operator_ids: Int64s) -> None:
        """Adds rows that were counted; `operator_ids` are PyTorch's numbers of the operators among them."""
        self._rows.append(rows)
        self._operator_ids.append(operator_ids)

    def rows(self) -> Rows:
        """All rows in file order."""
        return self._rows.rows()

    def recorded_permille(self) -> int | None:
        """Operators in the trace of those that ran; None: too few to tell."""
        return self._operator_ids.recorded_permille()

    def read_instants(self, events: Sequence[Instant]) -> None:
        """Takes what instants say of memory and of the window (`INSTANTS`), passing over the rest. Raises Refused."""
        memory = []
        for event in events:
            if event.name == MEMORY:
                memory.append(event)
            elif event.name.startswith("Iteration Start"):
                time = int(parse_microseconds([event.ts])[0])
                self.window_start_ns = time if time != MISSING else self.window_start_ns
            elif event.name == "Record Window End":
                time = int(parse_microseconds([event.ts])[0])
                self.window_end_ns = time if time != MISSING else self.window_end_ns
        if memory:
            self.count_rows(len(memory))
            self.memory.add(memory)

    def _choose(self, events: list[AnyEvent]) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        """The category of each event, or `_INSTANT`, or `_LEFT_OUT` for those that are not kept."""
        code_of = _CODES.get
        codes = np.array(bytearray([code_of(event.cat, _LEFT_OUT) for event in events]), np.uint8)
        collects = self.vocabulary.collections
        for at in np.flatnonzero(codes == _FRAME).tolist():
            frame = events[at]
            codes[at] = Category.COLLECTION if isinstance(frame, Event) and collects[frame.name] else _LEFT_OUT
        return codes

    def _number_places(self, kept: list[Event], said: list[EventArgs], on_device: Bools) -> Int32s:
        """(device, stream) of device work and (process, thread) of the host's, as numbers."""
        first, second = [event.pid for event in kept], [event.tid for event in kept]
        for at in np.flatnonzero(on_device).tolist():
            args = said[at]
            first[at] = first[at] if args.device is None else args.device
            second[at] = second[at] if args.stream is None else args.stream
        places = self.vocabulary.places.__getitem__
        return np.array(list(map(places, zip(first, second, strict=True))), np.int32)

    def _number_shapes(self, of_device: list[EventArgs]) -> Int32s:
        number_of = self.vocabulary.shapes.of
        known: dict[bytes, int] = {b"\n": -1}
        numbers = []
        for args in of_device:
            # A key of both at once: copying each takes longer than all else here. No JSON value begins with this.
            key = b"\n".join((args.grid, args.block))
            number = known.get(key)
            if number is None:
                number = known[key] = number_of(bytes(args.grid), bytes(args.block)) if args.grid else -1
            numbers.append(number)
        return np.array(numbers, np.int32)

    def _number_collectives(self, said: list[EventArgs], name: Int32s, possible: Bools) -> Int32s:
        collectives, vocabulary = np.full(len(said), -1, np.int32), self.vocabulary
        communicates = np.array(vocabulary.names.communicating, np.bool_)[name] & possible
        chosen = {at for at in np.flatnonzero(communicates).tolist() if said[at].dimensions}
        chosen.update([at for at, args in enumerate(said) if args.collective])
        for at in sorted(chosen):
            if possible[at]:
                collectives[at] = vocabulary.collectives.of(said[at], communicates=bool(communicates[at]))
        return collectives


def _numbers(values: list[Scalar]) -> Int64s:
    """Natural numbers as they are, -1 for anything else. Shape (len(values),)."""
    try:
        # Takes integers of 64 bits and nothing else.
        numbers = np.frombuffer(array("q", cast("list[int]", values)), np.int64)
    except (TypeError, OverflowError):
        small = [value if type(value) is int and -1 <= value < _LARGEST else -1 for value in values]
        numbers = np.array(small, np.int64)
    # Negative ones are the largest without a sign.
    return np.where(numbers.view(np.uint64) < _LARGEST, numbers, -1)
