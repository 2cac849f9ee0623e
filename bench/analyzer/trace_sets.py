"""Large traces for `make bench-analyzer`: the events of a real trace repeated in time, their text left as it stands.

Only what must differ is moved: times, correlations, external ids, ids of arrows, numbers of iterations. White space,
arguments and events that nobody measures stay, since reading them is what costs. Guarantees: the ranks of a job share
their compressed events, as a gzip member of its own behind the one that says the rank, so that 128 ranks are made in
seconds.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GAP_NS: Final = 1_000_000
_MOVED: Final = re.compile(
    rb'("ts"\s*:\s*|"correlation"\s*:\s*|"External id"\s*:\s*|"id"\s*:\s*|"name"\s*:\s*"ProfilerStep#)(\d+(?:\.\d+)?)'
)
_OPERATOR: Final = re.compile(rb'"cat"\s*:\s*"cpu_op"[^}]*?"External id"\s*:\s*(\d+)')
_LINE_BREAK: Final = re.compile(rb"\n\s*")
_STEPS: Final = 1000
_LEVEL: Final = 4


@dataclass(frozen=True)
class TraceSource:
    """A trace to repeat: the text of its list of events, and what stands before and behind it."""

    head: bytes
    events: bytes
    tail: bytes
    event_count: int

    @classmethod
    def of(cls, text: bytes, *, one_line: bool = False) -> TraceSource:
        """The source of a trace's text, without line breaks where asked for (JSON has none inside strings)."""
        if one_line:
            text = _LINE_BREAK.sub(b"", text)
        begin = text.index(b"[", text.index(b'"traceEvents"'))
        decoder = json.JSONDecoder()
        events, end = decoder.raw_decode(text.decode("latin-1"), begin)
        return cls(text[:begin], text[begin + 1 : end - 1].strip(), text[end:], len(events))

    def repeated(self, turns: int) -> Iterator[bytes]:
        """The list of events, `turns` times one after the other in time."""
        pieces = _MOVED.split(self.events)
        fixed, keys, numbers = pieces[0::3], pieces[1::3], pieces[2::3]
        times = [key.startswith(b'"ts"') for key in keys]
        decimals = max(len(number.partition(b".")[2]) for number in numbers)
        units = 10**decimals
        values = [
            _scaled(number, decimals) if is_time else int(number.partition(b".")[0])
            for number, is_time in zip(numbers, times, strict=True)
        ]
        real = [value for value, is_time in zip(values, times, strict=True) if is_time and value > 0]
        span = max(real) - min(real) + _GAP_NS * units // 1000
        # Each numbering goes on where it ended, as in one long recording: gaps would say that operators are missing.
        kinds = [key.partition(b":")[0] for key in keys]
        ranges: dict[bytes, tuple[int, int]] = {}
        for value, kind in zip(values, kinds, strict=True):
            if 0 < value < 1 << 31:
                low, high = ranges.get(kind, (value, value))
                ranges[kind] = min(low, value), max(high, value)
        # Calls into CUDA carry numbers of their own under the same key; nobody counts those.
        operators = [int(number) for number in _OPERATOR.findall(self.events)]
        if operators:
            ranges[b'"External id"'] = min(operators), max(operators)
        steps = {kind: high - low + 1 for kind, (low, high) in ranges.items()}
        texts = [before + key for before, key in zip(fixed, keys, strict=False)]
        for turn in range(turns):
            yield b"[" if turn == 0 else b","
            moved: list[bytes] = []
            for text, key, kind, value, is_time in zip(texts, keys, kinds, values, times, strict=True):
                if is_time:
                    whole, part = divmod(value + turn * span, units)
                    number = b"%d.%0*d" % (whole, decimals, part) if decimals else b"%d" % whole
                else:
                    number = b"%d" % (value + turn * (_STEPS if key.endswith(b"#") else steps.get(kind, 0)))
                moved += (text, number)
            moved.append(fixed[-1])
            yield b"".join(moved)
        yield b"]"

    def write_job(self, folder: Path, ranks: int, events: int) -> None:
        """Writes rank0.json.gz and so on, each with about `events` events."""
        folder.mkdir(parents=True)
        turns = max(1, round(events / self.event_count))
        packer = zlib.compressobj(_LEVEL, wbits=31)
        pieces = (_among(piece, ranks) for piece in (*self.repeated(turns), self.tail))
        shared = b"".join(packer.compress(piece) for piece in pieces) + packer.flush()
        for rank in range(ranks):
            head = _of_rank(self.head, rank, ranks)
            (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(head, mtime=0) + shared)


def _scaled(number: bytes, decimals: int) -> int:
    whole, _, part = number.partition(b".")
    return int(whole + part.ljust(decimals, b"0"))


def _of_rank(head: bytes, rank: int, ranks: int) -> bytes:
    """The text before the events, saying this rank whatever it said before."""
    head = re.sub(rb'"distributedInfo"\s*:\s*\{(?:[^{}]|\{[^{}]*\})*\}\s*,', b"", head)
    metadata = b'"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d},' % (rank, ranks)
    return head.replace(b"{", b"{" + metadata, 1)


def _among(text: bytes, ranks: int) -> bytes:
    """Collectives of two ranks as collectives of all."""
    members = b", ".join(b"%d" % rank for rank in range(ranks))
    text = text.replace(b'"Process Group Ranks": "[0, 1]"', b'"Process Group Ranks": "[%b]"' % members)
    return text.replace(b'"Group size": 2,', b'"Group size": %d,' % ranks)
