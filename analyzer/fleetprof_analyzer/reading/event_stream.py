"""Cuts a stream of trace text into events and the text around them, whatever its layout.

A trace is `{..., "traceEvents": [event, ...], ...}` or a bare `[event, ...]`, on one line or many. A block is cut at
the last place that looks like the border of two events and decoded at once; a wrong cut, or a value that strict JSON
refuses, makes that fail (braces or quotes cannot balance otherwise), and then the block is walked event by event.

Guarantees: memory of a few blocks plus one event (`TraceLimits.event_bytes`); a bad event costs that event only;
nothing recurses, so nesting is bounded by the event's length. Each loss is counted in `Problems`.
"""

import re
from collections.abc import Iterator
from typing import Final, Generic, Protocol

from fleetprof_analyzer.reading.event import REFUSALS, Decoded, Decoding
from fleetprof_analyzer.reading.repair import repair
from fleetprof_analyzer.trace.limits import TraceLimits, refuse
from fleetprof_analyzer.trace.problems import ProblemKind, Problems

_BLOCK_BYTES: Final = 512 << 10
# Events are a few hundred bytes; one that has not ended after this many is looked at for damage.
_PATIENCE_BYTES: Final = 1 << 16
_BORDER_LOOKAHEAD: Final = 64
_BORDER_WITHIN: Final = (1 << 12, 1 << 14, 1 << 18)
# Group 1 is the closing quote, or empty where the text ends inside the string.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)|[{}\[\]]', re.DOTALL)
_BORDER: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:)')
_SEPARATORS: Final = re.compile(rb"[\s,]*")
_SCALAR: Final = re.compile(rb"[^,\]{\[]*")
_LIST_FOLLOWS: Final = re.compile(rb"\s*:\s*\[")


class Taker(Protocol):
    """A reader that is offered text before it is decoded."""

    def __call__(self, text: bytes, length: int, /, *, is_bare: bool) -> bool:
        """Tells if it has taken the events of text[:length], with commas between them; `is_bare`: of a bare list."""


class EventStream(Generic[Decoded]):
    """Iterates over lists of events; afterwards `metadata` is the text around them, as one JSON object.

    `decoding` is AS_EVENTS, or AS_TEXT: each event as it stands (strings may be in broken UTF-8). What `take` takes
    is not decoded.
    """

    def __init__(
        self,
        blocks: Iterator[bytes],
        problems: Problems,
        limits: TraceLimits,
        decoding: Decoding[Decoded],
        take: Taker | None = None,
    ) -> None:
        self._blocks = blocks
        self._take = take
        self._decoding: Decoding[Decoded] = decoding
        self._problems = problems
        self._limits = limits
        self._buffer = b""
        self._ended = False
        self._closed = False
        self._is_bare = False
        self.decoded_bytes = 0
        self.metadata = b"{}"

    def __iter__(self) -> Iterator[list[Decoded]]:
        before = self._read_head()
        if before is None:
            return
        self._is_bare = not before
        yield from self._read_events()
        if not self._closed and not self._problems.count(ProblemKind.CORRUPT_GZIP):
            self._problems.note(ProblemKind.TRUNCATED)
        if before:
            self.metadata = before + b'"traceEvents":[]' + (self._read_tail() if self._closed else b"}")

    def _fill(self, wanted: int) -> bool:
        """Reads until the buffer holds `wanted` bytes; false when the input is over before that."""
        parts, length = [self._buffer], len(self._buffer)
        while length < wanted and not self._ended:
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
            else:
                parts.append(block)
                length += len(block)
                self.decoded_bytes += len(block)
        self._buffer = b"".join(parts) if len(parts) > 1 else self._buffer
        return length >= wanted

    def _read_head(self) -> bytes | None:
        """Consumes up to the bracket that opens the list; the object's text before it ("" for a bare list), or None."""
        wanted = _BLOCK_BYTES
        while True:
            more = self._fill(wanted)
            text = self._buffer.removeprefix(b"\xef\xbb\xbf").lstrip()
            if text.startswith(b"["):
                self._buffer = text[1:]
                return b""
            if text and not text.startswith(b"{"):
                self._problems.add(ProblemKind.NOT_A_TRACE, "the file is neither a JSON object nor a list")
                return None
            damaged = self._problems.count(ProblemKind.CORRUPT_GZIP) > 0  # which is why nothing is there
            if not text and not more:
                if not damaged:
                    self._problems.note(ProblemKind.EMPTY_FILE)
                return None
            found = _find_list(text)
            if found is not None:
                key, after = found
                self._buffer = text[after:]
                return text[:key]
            if not more and damaged:
                return None
            if not more:
                self._problems.add(ProblemKind.NOT_A_TRACE, 'the file holds no list "traceEvents"')
                return None
            if wanted > self._limits.metadata_bytes:
                raise refuse("the text before the events", self._limits.metadata_bytes, "bytes")
            wanted *= 2

    def _read_events(self) -> Iterator[list[Decoded]]:
        """Batches of events; ends where the list is closed or the input ends."""
        wanted = _BLOCK_BYTES
        while True:
            more = self._fill(wanted)
            cut = _last_border(self._buffer)
            if cut is not None and self._take is not None and self._take(self._buffer, cut[0], is_bare=self._is_bare):
                self._buffer = self._buffer[cut[1] :]
                wanted = _BLOCK_BYTES
                continue
            if cut is not None:
                try:
                    events = self._decoding.batch(b"".join((b"[", self._buffer[: cut[0]], b"]")))
                except REFUSALS:
                    pass
                else:
                    self._buffer = self._buffer[cut[1] :]
                    wanted = _BLOCK_BYTES
                    yield events
                    continue
            events, consumed, self._closed = self._walk(self._buffer)
            self._buffer = self._buffer[consumed:]
            yield events
            if self._closed or (not more and not consumed):
                return
            # An event longer than the block: read on until it is whole, or too long.
            wanted = max(_BLOCK_BYTES, 2 * len(self._buffer)) if not consumed else _BLOCK_BYTES

    def _walk(self, text: bytes) -> tuple[list[Decoded], int, bool]:
        """Event by event: (events, bytes consumed, list closed). Stops before an event that is not whole."""
        events: list[Decoded] = []
        at = 0
        while True:
            at = _end(_SEPARATORS, text, at)
            if at >= len(text):
                return events, at, False
            if text[at] == ord("]"):
                return events, at + 1, True
            end = _value_end(text, at, at + _PATIENCE_BYTES)
            if end is None:
                if len(text) - at <= _PATIENCE_BYTES and not self._ended:
                    return events, at, False
                border = _hidden_border(text, at, at + _PATIENCE_BYTES)
                if border is not None:
                    self._lose_step()
                    at = border
                    continue
                end = _value_end(text, at, len(text))
            if end is None:
                if len(text) - at > self._limits.event_bytes:
                    raise refuse("one event", self._limits.event_bytes, "bytes")
                return events, at, False
            event = self._decode_one(text[at:end])
            if event is None:
                # The pattern looks at the beginning of the next event, which may lie behind this one's end.
                found = _BORDER.search(text, at, end + _BORDER_LOOKAHEAD)
                end = end if found is None else found.end()
            else:
                events.append(event)
            at = end

    def _lose_step(self) -> None:
        """Counts an event whose end cannot be found. Each costs a search, so their number is bounded."""
        self._problems.add(ProblemKind.LOST_EVENTS, "a quote without its partner")
        if self._problems.count(ProblemKind.LOST_EVENTS) > self._limits.lost_events:
            raise refuse("the number of events without an end", self._limits.lost_events, "events")

    def _decode_one(self, text: bytes) -> Decoded | None:
        try:
            return self._decoding.one(text)
        except REFUSALS:
            pass
        try:
            event = self._decoding.one(repair(text))
        except REFUSALS as error:
            self._problems.add(ProblemKind.LOST_EVENTS, str(error))
            return None
        self._problems.add(ProblemKind.REPAIRED_EVENTS, getattr(event, "name", ""))
        return event

    def _read_tail(self) -> bytes:
        if self._fill(self._limits.metadata_bytes):
            raise refuse("the text after the events", self._limits.metadata_bytes, "bytes")
        return self._buffer


def _end(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _last_border(text: bytes) -> tuple[int, int] | None:
    """(end of an event, start of the next) nearest to the end of `text`."""
    for within in _BORDER_WITHIN:
        borders = list(_BORDER.finditer(text, max(0, len(text) - within)))
        if borders:
            return borders[-1].start() + 1, borders[-1].end()
    return None


def _hidden_border(text: bytes, at: int, stop: int) -> int | None:
    """The position of the next event's begin, if a string that should have ended long ago swallows its border.

    A stray quote turns every string after it inside out; in sound text a border inside a string is very rare.
    """
    border = _BORDER.search(text, at, stop)
    if border is None:
        return None
    for token in _TOKEN.finditer(text, at, stop):
        if token.end() > border.start():
            return border.end() if token[0].startswith(b'"') and token.start() < border.start() else None
    return None


def _value_end(text: bytes, at: int, stop: int) -> int | None:
    """The end of the JSON value at `at`; None when it does not end before `stop`."""
    stop = min(stop, len(text))
    if text[at] not in b'{["':
        match = _SCALAR.match(text, at, stop)
        end = at if match is None else match.end()
        return max(end, at + 1) if end < stop else None
    depth = 0
    for token in _TOKEN.finditer(text, at, stop):
        first = text[token.start()]
        if first == ord('"'):
            if token[1] != b'"':
                return None
        elif first in b"{[":
            depth += 1
        else:
            depth -= 1
        if depth <= 0:
            return token.end()
    return None


def _find_list(text: bytes) -> tuple[int, int] | None:
    """(start of the key "traceEvents" of the outermost object, position after its list's bracket)."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == ord('"'):
            if depth == 1 and token[0] == b'"traceEvents"':
                follows = _LIST_FOLLOWS.match(text, token.end())
                if follows is not None:
                    return token.start(), follows.end()
        elif first in b"{[":
            depth += 1
        else:
            depth -= 1
    return None
