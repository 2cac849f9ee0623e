"""Decoded events into columns: which are kept, and what of them.

Guarantees: rows keep the order of the file; a value that is not of the documented kind counts as unsaid; where a
limit is passed, `LimitExceeded` says which.
"""

from collections.abc import Sequence
from itertools import compress, count
from typing import Final, cast

import numpy as np

from fleetprof_analyzer.reading.ascend import read_kind
from fleetprof_analyzer.reading.columns.growing import GrowingRows, OperatorIds, is_numbered
from fleetprof_analyzer.reading.columns.memory_rows import NAME as MEMORY
from fleetprof_analyzer.reading.columns.memory_rows import MemoryColumns
from fleetprof_analyzer.reading.columns.nanoseconds import (
    MISSING,
    join_tokens,
    pack_durations,
    parse_joined,
    parse_microseconds,
    read_durations,
)
from fleetprof_analyzer.reading.columns.packing import pack_counts, pack_numbers, read_counts, read_numbers
from fleetprof_analyzer.reading.columns.pending import Pending
from fleetprof_analyzer.reading.columns.vocabulary import Vocabulary
from fleetprof_analyzer.reading.event import (
    FRAME,
    INSTANT,
    LEFT_OUT,
    AnyEvent,
    Event,
    EventArgs,
    EventCategory,
    Instant,
)
from fleetprof_analyzer.trace.limits import TraceLimits, refuse
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Category, Int32s, Int64s, Rows

INSTANTS: Final = ("Iteration Start", "Record Window End")
LEAST_FRAME_NS: Final = 100_000
"""A shorter frame of the user's code is not kept: there are very many, and a silence is twice as long."""
_ENOUGH_ROWS: Final = 16_000
_NOTHING_SAID: Final = EventArgs()


def _mask(*codes: int) -> bytes:
    """For `bytes.translate`: 1 for these codes, 0 for all others."""
    return bytes(code in codes for code in range(256))


_INSTANTS: Final = _mask(INSTANT)
_FRAMES: Final = _mask(FRAME)
_LEFT_OUT: Final = _mask(LEFT_OUT)
_OTHER: Final = EventCategory.OTHER
_KEPT: Final = _mask(*Category)
_NOT_KEPT: Final = bytes({LEFT_OUT, FRAME, INSTANT})
_ON_DEVICE: Final = _mask(Category.KERNEL, Category.MEMCPY, Category.MEMSET)


def _lasts(duration_us: float | str | None) -> bool:
    return isinstance(duration_us, float) and duration_us * 1000 >= LEAST_FRAME_NS


class RowCollector:
    """Collects kept rows, one batch of events after the other."""

    def __init__(self, problems: Problems, limits: TraceLimits) -> None:
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
        self._pending = Pending()

    def add(self, events: list[AnyEvent]) -> None:
        """Adds one batch. Raises LimitExceeded."""
        self.count_events(len(events))
        codes = self._choose(events)
        if INSTANT in codes:
            self.read_instants(cast(list[Instant], list(compress(events, codes.translate(_INSTANTS)))))
        kept = cast(list[Event], list(compress(events, codes.translate(_KEPT))))
        if not kept:
            return
        self.count_rows(len(kept))
        category = bytes(codes.translate(None, _NOT_KEPT))
        on_device = category.translate(_ON_DEVICE)
        # One plain loop per column: a call per event would take longer than decoding it.
        arguments = [event.args or _NOTHING_SAID for event in kept]
        of_device = list(compress(arguments, on_device))
        numbers = map(self.vocabulary.names.__getitem__, [event.name for event in kept])
        name = pack_numbers(numbers, len(kept))
        place = self._add_places(kept, of_device, on_device)
        pending = self._pending
        pending.place = place
        self._add_tensors(arguments, name, category)
        pending.category += category
        pending.name += name
        pending.starts.append(join_tokens([event.ts for event in kept]))
        pending.durations += pack_durations([event.dur for event in kept])
        pending.sequence_number += pack_counts([args.sequence_number for args in arguments])
        pending.correlation += pack_counts([args.correlation for args in arguments])
        pending.external_id += pack_counts([args.external_id for args in arguments])
        pending.byte_count += pack_counts([args.bytes for args in of_device])
        pending.shape += pack_numbers(self._number_shapes(of_device), len(of_device))
        if len(pending.category) >= _ENOUGH_ROWS or place is not None:
            self.settle()

    def settle(self) -> None:
        """Makes rows of all that was added; to be called before places are numbered elsewhere."""
        pending = self._pending
        if not pending.category:
            return
        self._pending = Pending()
        category, name = np.frombuffer(pending.category, np.int8), read_numbers(pending.name)
        start = parse_joined(b" ".join(pending.starts), len(category))
        duration = read_durations(pending.durations)
        on_device = category <= Category.MEMSET
        at_host = ~(on_device | (category == Category.RUNTIME))
        place = pending.place
        if place is None:
            place = pending.place_keys.number(self.vocabulary.places, on_device)
        detail = np.where(at_host, read_counts(pending.sequence_number), -1)
        detail[on_device] = read_counts(pending.byte_count)
        shape, collective = np.full(len(category), -1, np.int32), np.full(len(category), -1, np.int32)
        shape[on_device] = read_numbers(pending.shape)
        shape[list(pending.inputs)] = list(pending.inputs.values())
        collective[list(pending.collective)] = list(pending.collective.values())
        rows = Rows(
            category=category,
            name=name,
            place=place,
            start_ns=start,
            duration_ns=duration,
            correlation=np.where(at_host, -1, read_counts(pending.correlation)),
            shape=shape,
            collective=collective,
            detail=detail,
        )
        unreadable = (start == MISSING) | (duration == MISSING)
        if unreadable.any():
            example = list(self.vocabulary.names)[int(name[unreadable.argmax()])]
            self._problems.add(ProblemKind.BAD_TIMES, example, int(unreadable.sum()))
            rows = rows.select(~unreadable)
        self._rows.append(rows)
        self._operator_ids.append(read_counts(pending.external_id).compress(is_numbered(category)))

    def count_events(self, count: int) -> None:
        """Counts events that were decoded, kept or not. Raises LimitExceeded."""
        self.event_count += count
        if self.event_count > self._limits.events:
            raise refuse("the number of events", self._limits.events, "events")

    def count_rows(self, count: int) -> None:
        """Counts rows about to be kept. Raises LimitExceeded."""
        self._row_count += count
        if self._row_count > self._limits.kept_rows:
            raise refuse("the number of operators, annotations and kernels", self._limits.kept_rows, "rows")

    def append(self, rows: Rows, operator_ids: Int64s) -> None:
        """Adds rows that were counted; `operator_ids` are PyTorch's numbers of those that it numbers."""
        self.settle()
        self._rows.append(rows)
        self._operator_ids.append(operator_ids)

    def rows(self) -> Rows:
        """All rows in file order."""
        self.settle()
        return self._rows.rows()

    def recorded_permille(self) -> int | None:
        """Operators in the trace of those that ran; None: too few to tell."""
        self.settle()
        return self._operator_ids.recorded_permille()

    def read_instants(self, events: Sequence[Instant]) -> None:
        """Takes what instants say of memory and of the window (`INSTANTS`), no others. Raises LimitExceeded."""
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

    def _choose(self, events: list[AnyEvent]) -> bytearray:
        """The category of each event, or `INSTANT`, or `LEFT_OUT` for those that are not kept."""
        try:
            codes = bytearray([event.cat.code for event in events])  # type: ignore[union-attr]
        except AttributeError:  # "cat": null
            codes = bytearray([LEFT_OUT if event.cat is None else event.cat.code for event in events])
        for at in compress(count(), codes.translate(_LEFT_OUT)):
            row = events[at]
            if type(row) is Event and row.cat is _OTHER:
                codes[at] = read_kind(row)
        if FRAME in codes:
            kinds = self.vocabulary.frames
            for at in compress(count(), codes.translate(_FRAMES)):
                frame = events[at]
                codes[at] = code = kinds[frame.name] if isinstance(frame, Event) else LEFT_OUT
                if code == Category.FRAME and not _lasts(frame.dur):  # type: ignore[union-attr]
                    codes[at] = LEFT_OUT
        return codes

    def _add_places(self, kept: list[Event], of_device: list[EventArgs], on_device: bytes) -> Int32s | None:
        """Adds (device, stream) of device work and (process, thread) of the host's, where all are integers.

        Else their numbers, and nothing else is pending.
        """
        processes, threads = [event.pid for event in kept], [event.tid for event in kept]
        devices, streams = [args.device for args in of_device], [args.stream for args in of_device]
        if self._pending.place_keys.add(processes, threads, devices, streams):
            return None
        self.settle()
        for at, device, stream in zip(compress(count(), on_device), devices, streams, strict=False):
            processes[at] = processes[at] if device is None else device
            threads[at] = threads[at] if stream is None else stream
        places = map(self.vocabulary.places.__getitem__, zip(processes, threads, strict=True))
        return np.fromiter(places, np.int32, len(kept))

    def _number_shapes(self, of_device: list[EventArgs]) -> list[int]:
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
        return numbers

    def _add_tensors(self, arguments: list[EventArgs], name: bytes, category: bytes) -> None:
        """Numbers what rows say of a collective and of their inputs; to be called before they are added."""
        telling = [at for at, args in enumerate(arguments) if args.dimensions or args.collective]
        if not telling:
            return
        vocabulary, pending = self.vocabulary, self._pending
        names, numbers = vocabulary.names, read_numbers(name).tolist()
        communicates = names.communicate(read_numbers(name)).tobytes()
        before, inputs = len(pending.category), vocabulary.inputs
        for at in telling:
            args, code = arguments[at], category[at]
            if code == Category.OPERATOR and args.dimensions:
                pending.inputs[before + at] = inputs.of(args, has_values=names.has_values(numbers[at]))
            if (communicates[at] or args.collective) and code != Category.RUNTIME:
                number = vocabulary.collectives.of(args, communicates=bool(communicates[at]))
                pending.collective[before + at] = number
