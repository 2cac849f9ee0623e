"""Copies the events of one rank that lie in the window, byte for byte but for time, process, thread and arrow.

Guarantees: every event that is kept appears once; one with a duration is kept whole when any part of it lies in the
window; what cannot be read, and durations that cannot be, are left out and counted; memory of one batch, and of the
names of the threads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from fleetprof_analyzer.reading.columns.nanoseconds import MISSING, parse_microseconds
from fleetprof_analyzer.reading.event import REFUSALS
from fleetprof_analyzer.reading.repair import repair
from fleetprof_analyzer.timeline.events.marks import Span
from fleetprof_analyzer.timeline.events.numbering import ArrowIds, TimelinePlaces
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import CATEGORIES, Bools, Category, Int64s

_DAY_NS: Final = 86_400 * 10**9
_LONG_NS: Final = 10**9
_MOST_NAMING: Final = 100_000
_ON_DEVICE: Final = frozenset(name for name, category in CATEGORIES.items() if category <= Category.MEMSET)
_GPU: Final = _ON_DEVICE | {"gpu_user_annotation", "cuda_sync"}
_ARROWS: Final = frozenset("stf")
_NAMES_THREADS: Final = ("thread_name", "thread_sort_index")
_OF_PROCESS: Final = {"process_name": "name", "process_labels": "labels"}
_MOST_WORDS: Final = 200
_NO_TIME: Final = msgspec.Raw(b"0")
_NOTHING: Final = msgspec.Raw(b"null")

Fields = dict[str, msgspec.Raw]


class _Head(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str | None = ""
    ts: msgspec.Raw = _NO_TIME
    dur: msgspec.Raw = msgspec.Raw(b"")


_HEAD: Final = msgspec.json.Decoder(_Head)
_FIELDS: Final = msgspec.json.Decoder(Fields)
_UNREADABLE: Final = _Head()


@dataclass(frozen=True, slots=True)
class Cut:
    """The part to take of one rank's file, in ns of the file's own times; `shift_ns` makes the new times of them.

    `long_work` holds (start, duration) of the device's rows of more than a second that the reader believes.
    """

    window_ns: Span
    shift_ns: int
    long_work: frozenset[Span] = frozenset()


@dataclass(slots=True)
class Rewriter:
    """Rewrites the events of one rank."""

    cut: Cut
    places: TimelinePlaces
    arrows: ArrowIds
    problems: Problems
    kept: int = 0
    used: set[str] = field(default_factory=set)  # processes with at least one event that was kept
    devices: set[str] = field(default_factory=set)  # those of them that are a GPU
    naming: list[Fields] = field(default_factory=list)  # metadata events

    def rewrite(self, texts: Sequence[msgspec.Raw]) -> Iterator[bytes]:
        """The new texts of those that are kept. Raises LimitExceeded."""
        heads = [self._head(text) for text in texts]
        start = parse_microseconds([head.ts for head in heads])
        duration = parse_microseconds([head.dur if head.ph == "X" else _NO_TIME for head in heads])
        metadata = np.array([head.ph == "M" for head in heads], np.bool_)
        readable = np.array([head is not _UNREADABLE for head in heads], np.bool_)
        real = self._plausible(heads, start, duration, readable & ~metadata)
        first, end = self.cut.window_ns
        inside = (start < end) & ((start + duration > first) | (start == first))
        for at in np.flatnonzero((real & inside) | (readable & metadata)).tolist():
            fields = self._fields(bytes(texts[at]))
            if fields is None:
                continue
            if metadata[at]:
                if len(self.naming) < _MOST_NAMING:
                    self.naming.append(fields)
                continue
            text = self._rewrite(fields, heads[at], int(start[at]))
            if text is not None:
                self.kept += 1
                yield text

    def thread_events(self) -> Iterator[tuple[str, str, bytes]]:
        """(process, thread, new text) of the metadata events that name or order a thread with events."""
        for fields in self.naming:
            if _value(fields.get("name")) in _NAMES_THREADS:
                pid, tid = _text(fields.get("pid")), _text(fields.get("tid"))
                if (pid, tid) in self.places.threads:
                    yield pid, tid, self._join(fields, None, pid, tid)

    def process_texts(self) -> dict[tuple[str, str], str]:
        """The words of the trace about processes: (process, "name" or "labels") -> its words."""
        found: dict[tuple[str, str], str] = {}
        for fields in self.naming:
            key = _OF_PROCESS.get(str(_value(fields.get("name"))))
            args = _value(fields.get("args"))
            if key is not None and isinstance(args, dict):
                found[_text(fields.get("pid")), key] = str(args.get(key, ""))[:_MOST_WORDS]
        return found

    def _head(self, text: msgspec.Raw) -> _Head:
        try:
            head = _HEAD.decode(text)
        except REFUSALS:
            try:
                head = _HEAD.decode(repair(bytes(text)))
            except REFUSALS as error:
                self.problems.add(ProblemKind.LOST_EVENTS, str(error))
                return _UNREADABLE
        if not head.ph:
            self.problems.add(ProblemKind.LOST_EVENTS, "an event that does not say what it is")
            return _UNREADABLE
        return head

    def _plausible(self, heads: list[_Head], start: Int64s, duration: Int64s, candidates: Bools) -> Bools:
        """A mask of the `candidates` whose time and duration can be; the others are counted."""
        timeless = candidates & ((start == MISSING) | (duration == MISSING))
        negative = candidates & ~timeless & (duration < 0)
        absurd = candidates & ~timeless & (duration > _DAY_NS)
        for at in np.flatnonzero(candidates & ~timeless & ~absurd & (duration > _LONG_NS)).tolist():
            if heads[at].cat in _ON_DEVICE:
                absurd[at] = (int(start[at]), int(duration[at])) not in self.cut.long_work
        # Before the file's first possible time: Perfetto takes no time below zero.
        early = candidates & ~timeless & (start < -self.cut.shift_ns)
        self.problems.add(ProblemKind.BAD_TIMES, count=int(timeless.sum() + (early & ~negative & ~absurd).sum()))
        self.problems.add(ProblemKind.NEGATIVE_DURATION, count=int(negative.sum()))
        self.problems.add(ProblemKind.ABSURD_DURATION, count=int(absurd.sum()))
        return np.asarray(candidates & ~timeless & ~negative & ~absurd & ~early)

    def _fields(self, text: bytes) -> Fields | None:
        try:
            text.decode()
        except UnicodeDecodeError:
            text = repair(text)
            self.problems.add(ProblemKind.REPAIRED_EVENTS)
        try:
            return _FIELDS.decode(text)
        except REFUSALS as error:
            self.problems.add(ProblemKind.LOST_EVENTS, str(error))
            return None

    def _rewrite(self, fields: Fields, head: _Head, start_ns: int) -> bytes | None:
        if head.ph in _ARROWS and "id" in fields:
            arrow = self.arrows.of(_value(fields["id"]))
            if arrow is None:
                self.problems.add(ProblemKind.LOST_EVENTS, "an arrow whose id is no number")
                return None
            fields["id"] = msgspec.Raw(b"%d" % arrow)
        elif "id" in fields and head.ph in "bne":
            fields["id"] = msgspec.Raw(msgspec.json.encode(f"{self.arrows.position}:{_text(fields['id'])}"))
        pid, tid = _text(fields.get("pid")), _text(fields.get("tid"))
        self.used.add(pid)
        if head.cat in _GPU:
            self.devices.add(pid)
        return self._join(fields, start_ns + self.cut.shift_ns, pid, tid)

    def _join(self, fields: Fields, time_ns: int | None, pid: str, tid: str) -> bytes:
        fields["ts"] = msgspec.Raw(b"0" if time_ns is None else microseconds(time_ns))
        fields["pid"] = msgspec.Raw(b"%d" % self.places.process(pid))
        fields["tid"] = msgspec.Raw(b"%d" % self.places.thread(pid, tid))
        return b"{%s}" % b", ".join(b"%s: %s" % (msgspec.json.encode(key), bytes(raw)) for key, raw in fields.items())


def microseconds(time_ns: int) -> bytes:
    """A time of at least 0 as the digits of a JSON number of µs, exact."""
    return b"%d.%03d" % divmod(time_ns, 1000)


def _value(raw: msgspec.Raw | None) -> object:
    try:
        return msgspec.json.decode(_NOTHING if raw is None else raw)
    except REFUSALS:
        return None


def _text(raw: msgspec.Raw | None) -> str:
    """A process or thread as text: old traces write one and the same as number here and as text there."""
    value = _value(raw)
    return "" if value is None else str(value)
