"""Reads what a trace says about itself from the text around its events.

Guarantees: each field is taken by itself, so that one strange value costs that value only; "rank" is distributedInfo's,
never one that stands elsewhere.
"""

import re
from typing import Any, Final

import msgspec

from fleetprof_analyzer.reading.event import REFUSALS
from fleetprof_analyzer.reading.repair import repair
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import TraceMetadata

_NOTHING: Final = msgspec.Raw(b"null")
_BASE: Final = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_RANK: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,9})\b')
_EVENTS: Final = b'"traceEvents"'
_NEXT_OBJECT: Final = re.compile(rb"\}\s*\{")
_LARGEST_BASE_NS: Final = 1 << 62


class _Around(msgspec.Struct, rename="camel"):
    distributed_info: msgspec.Raw = _NOTHING
    base_time_nanoseconds: msgspec.Raw = _NOTHING
    device_properties: msgspec.Raw = _NOTHING
    trace_id: msgspec.Raw = msgspec.field(default=_NOTHING, name="trace_id")
    host_name: msgspec.Raw = msgspec.field(default=_NOTHING, name="host_name")


class _Distributed(msgspec.Struct):
    rank: int | None = None
    world_size: int | None = None
    pg_config: msgspec.Raw = _NOTHING


class _Group(msgspec.Struct):
    pg_name: str = ""
    ranks: list[int] = []


class _Device(msgspec.Struct):
    name: str = ""


def read_metadata(text: bytes, problems: Problems) -> TraceMetadata:
    """Metadata from the object around the events; what is unreadable is counted and left empty."""
    try:
        around = msgspec.json.decode(text, type=_Around)
    except REFUSALS:
        text = _without_second(text, problems)
        try:
            around = msgspec.json.decode(repair(text), type=_Around)
        except REFUSALS as error:
            problems.add(ProblemKind.BAD_METADATA, f"the text around the events: {error}")
            return _search(text)
    distributed: _Distributed | None = _read(around.distributed_info, _Distributed | None, problems, "distributedInfo")
    base: int | None = _read(around.base_time_nanoseconds, int | None, problems, "baseTimeNanoseconds")
    devices: list[_Device] | None = _read(around.device_properties, list[_Device] | None, problems, "deviceProperties")
    return TraceMetadata(
        rank=None if distributed is None else _natural(distributed.rank),
        world_size=None if distributed is None else _natural(distributed.world_size),
        trace_id=(_read(around.trace_id, str | None, problems, "trace_id") or "")[:200],
        host_name=(_read(around.host_name, str | None, problems, "host_name") or "")[:200],
        device_name=devices[0].name[:200] if devices else "",
        groups={} if distributed is None else _groups(distributed.pg_config, problems),
        base_ns=base if base is not None and 0 <= base < _LARGEST_BASE_NS else None,
    )


def _without_second(text: bytes, problems: Problems) -> bytes:
    """The text without a second recording, which begins behind the end of the first one's object."""
    first = text.find(_EVENTS)
    second = text.find(_EVENTS, first + len(_EVENTS)) if first >= 0 else -1
    found = _NEXT_OBJECT.search(text, first, second) if second >= 0 else None
    if found is None:
        return text
    problems.add(
        ProblemKind.SECOND_RECORDING, "another recording follows in the file and was not read: give each a file"
    )
    return text[: found.start() + 1]


def _read(raw: msgspec.Raw, kind: Any, problems: Problems, name: str) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except REFUSALS as error:
        problems.add(ProblemKind.BAD_METADATA, f"{name}: {error}")
        return None


def _groups(raw: msgspec.Raw, problems: Problems) -> dict[str, tuple[int, ...]]:
    """Process groups by name; older traces write the list as text."""
    value = _read(raw, list[_Group] | str | None, problems, "pg_config")
    if isinstance(value, str):
        value = _read(msgspec.Raw(value.encode()), list[_Group] | None, Problems(), "pg_config")
    return {group.pg_name: tuple(sorted(set(group.ranks))) for group in value or [] if group.ranks}


def _natural(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < 1 << 31 else None


def _search(text: bytes) -> TraceMetadata:
    """The two facts that matter most, from text that is no JSON."""
    base, rank = _BASE.search(text), _RANK.search(text)
    base_ns = None if base is None or int(base[1]) >= _LARGEST_BASE_NS else int(base[1])
    return TraceMetadata(rank=None if rank is None else int(rank[1]), base_ns=base_ns)
