"""The part of a report that the hub reads: what stands in `report.json` before its ranks.

Guarantees: at most `MOST_BYTES` are fetched and decoded, whatever the report's length: one of ten thousand ranks has
65 MB, and would fill the hub's memory and stop its loop. What is not there, or not readable, has its default.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from fleetprof_api.report.start_skew import StartSkew

# The ranks' starts take 250 bytes each: enough for 30,000 of them.
MOST_BYTES: Final = 8 << 20
_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"\s*")


class ReportHead(msgspec.Struct, kw_only=True):
    """Sections of fleetprof_api.report.report.Report."""

    start: StartSkew = msgspec.field(default_factory=StartSkew)
    whole_traces: list[int] = []


def read_head(begin: bytes) -> ReportHead:
    """The head of a report that begins with these bytes; they may end anywhere behind it."""
    sections = {}
    try:
        for name, value in _each_section(begin.decode(errors="replace")):
            if name in ReportHead.__struct_fields__:
                sections[name] = value
        return msgspec.convert(sections, ReportHead)
    except (ValueError, IndexError, RecursionError):  # msgspec's own is a ValueError
        return ReportHead()


def _each_section(text: str) -> Iterator[tuple[str, Any]]:
    """Names and values of a JSON object up to "ranks". Raises ValueError, IndexError where it ends or breaks off."""
    at = _skip(text, 0, "{")
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        if name == "ranks":
            return
        value, at = _DECODER.raw_decode(text, _skip(text, at, ":"))
        yield name, value
        at = _skip(text, at, ",")


def _skip(text: str, at: int, mark: str) -> int:
    """The begin of the next token, behind `mark` if that comes first."""
    at = _whole_space(text, at)
    return _whole_space(text, at + 1) if text[at] == mark else at


def _whole_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
