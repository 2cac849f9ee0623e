"""What the agents say, checked: types and ranges of every field, before anything of it is believed or kept.

Guarantees: `parse_agent_message` raises nothing but ValueError, whatever the bytes; every text is printable ASCII of
bounded length, every number within the range of the protobuf field it ends up in, every column as long as its
neighbours. Unknown fields are dropped. The messages are those of `fleetprof_agent.wire`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from fleetprof_agent import wire
from fleetprof_agent.samples import nvml
from fleetprof_api.samples import MOST_MODULES, DeviceColumns, ModuleColumns, ThreadColumns

MAX_TEXT: Final = 256
MAX_ROWS: Final = 4096
_INT32: Final = 2**31 - 1
_INT64: Final = 2**63 - 1
_CAPTURE: Final = re.compile(r"[a-z0-9-]{0,63}")
_SOCKET_NAME: Final = re.compile(r"(dynoconfigclient[A-Za-z0-9-]{1,64})?")
_AMOUNTS: Final = {
    "short": ("headroom_bytes", "needed_bytes"),
    "memory": ("before_bytes", "peak_bytes", "after_bytes"),
}
_OWN_PROFILE: Final = re.compile(r"(warmup|active)?")
_DEVICE_COLUMNS: Final = tuple(DeviceColumns.__struct_fields__)
_MODULE_COLUMNS: Final = get_type_hints(ModuleColumns)
_THREAD_COLUMNS: Final = tuple(name for name in ThreadColumns.__struct_fields__ if name != "at_unix_ns")
_TELEMETRY: Final = (*nvml.FIELDS, *nvml.HEALTH_FIELDS)
_COLLECTIVE_NUMBERS: Final = ("sequence", "created_unix_ns")
_COLLECTIVE_TEXTS: Final = ("group", "name", "sizes", "ranks")
_COLLECTIVE_FLAGS: Final = ("is_p2p", "is_over")
_THREAD_TIMES: Final = ("at_unix_ns", "step", "step_unix_ns")
_CORES: Final = ("usable_cores", "cpu_limit_millicores", "torch_threads")
MOST_NAMED: Final = 1024  # places, and stacks, of one capture
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class AgentHello:
    """Who an agent lives in. None and "": the agent does not know either."""

    pid: int
    ppid: int
    uid: int
    rank: int | None
    local_rank: int | None
    world_size: int | None
    restart_count: int
    role: str
    torch: str
    python: str
    device_kind: str
    device_name: str
    device_uuid: str
    host: str
    started_unix_ns: int
    kineto: str

    @property
    def waits(self) -> bool:
        """Tells whether its process has made no optimizer step yet; many never do."""
        return self.role == wire.WAITING


@dataclass(frozen=True, slots=True)
class AgentSteps:
    """Where the training stands: `step` optimizer steps at `at_unix_ns`. 0: not known."""

    pid: int
    step: int
    at_unix_ns: int
    iteration_ns: int
    per_iteration: int
    fastest_iteration_ns: int = 0
    headroom_bytes: int = 0
    own_profile: str = ""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """What the job's own torch.profiler is at: "" (nothing), "warmup" or "active"."""

    pid: int
    own_profile: str


@dataclass(frozen=True, slots=True)
class AgentReport:
    """Something about a capture; `kind` and `fields`: wire.py."""

    pid: int
    kind: str
    fields: Mapping[str, Any]


AgentDatagram = AgentHello | AgentSteps | AgentProfile | AgentReport


def parse_agent_message(data: bytes) -> AgentDatagram:
    """One datagram from an agent. Raises ValueError naming the field that is wrong."""
    fields = wire.decode(data, wire.FROM_AGENT)
    kind = fields["t"]
    pid = _integer(fields, "pid", 1, _INT32)
    match kind:
        case "hello":
            return AgentHello(
                pid=pid,
                ppid=_integer(fields, "ppid", 0, _INT32, default=0),
                uid=_integer(fields, "uid", 0, 2**32 - 1, default=0),
                rank=_optional(fields, "rank"),
                local_rank=_optional(fields, "local_rank"),
                world_size=_optional(fields, "world_size"),
                restart_count=_integer(fields, "restart_count", 0, _INT32, default=0),
                role=_text(fields, "role"),
                torch=_text(fields, "torch"),
                python=_text(fields, "python"),
                device_kind=_text(fields, "device_kind"),
                device_name=_text(fields, "device_name"),
                device_uuid=_text(fields, "device_uuid"),
                host=_text(fields, "host"),
                started_unix_ns=_integer(fields, "started_unix_ns", 0, _INT64, default=0),
                kineto=_matching(fields, "kineto", _SOCKET_NAME),
            )
        case "steps":
            return AgentSteps(
                pid=pid,
                step=_integer(fields, "step", 0, _INT64),
                at_unix_ns=_integer(fields, "at_unix_ns", 0, _INT64),
                iteration_ns=_integer(fields, "iteration_ns", 0, _INT64, default=0),
                per_iteration=_integer(fields, "per_iteration", 1, 10_000, default=1),
                fastest_iteration_ns=_integer(fields, "fastest_iteration_ns", 0, _INT64, default=0),
                headroom_bytes=_integer(fields, "headroom_bytes", 0, _INT64, default=0),
                own_profile=_matching(fields, "own_profile", _OWN_PROFILE),
            )
        case "profile":
            return AgentProfile(pid=pid, own_profile=_matching(fields, "own_profile", _OWN_PROFILE))
        case "times":
            steps = _integers(fields, "step")
            ends = _integers(fields, "end_unix_ns")
            if len(steps) != len(ends):
                raise ValueError("times: step and end_unix_ns must be equally long")
            return AgentReport(pid, kind, {"capture": _capture(fields), "step": steps, "end_unix_ns": ends})
        case "device":
            columns = {name: _column(fields, name) for name in _DEVICE_COLUMNS if fields.get(name) is not None}
            rows = _integers(fields, "at_unix_ns")
            if any(len(column) != len(rows) for column in columns.values()):
                raise ValueError("device: all columns must be as long as at_unix_ns")
            return AgentReport(pid, kind, {"capture": _capture(fields), **columns, "at_unix_ns": rows})
        case "telemetry":
            telemetry = {name: _integer(fields, name, 0, _INT64) for name in _TELEMETRY if fields.get(name) is not None}
            when = {name: _integer(fields, name, 0, _INT64) for name in ("at_unix_ns", "step")}
            return AgentReport(pid, kind, {**when, "values": telemetry})
        case "places":
            lines = _integers(fields, "line", _INT32)
            files, functions = _texts(fields, "file"), _texts(fields, "function")
            if not len(lines) == len(files) == len(functions):
                raise ValueError("places: file, function and line must be equally long")
            generators = _flags(fields, "generator") if "generator" in fields else [False] * len(lines)
            if len(generators) != len(lines):
                raise ValueError("places: generator must be as long as line")
            places = {"file": files, "function": functions, "line": lines, "generator": generators}
            return AgentReport(pid, kind, {**_owner(fields), "first": _first(fields), **places})
        case "stacks":
            stacks = fields.get("stacks")
            if not isinstance(stacks, list) or len(stacks) > MOST_NAMED:
                raise ValueError(f"stacks: must be a list of at most {MOST_NAMED} stacks")
            places_of_stacks = [_numbers("stacks", stack, _DEEPEST, MOST_NAMED - 1) for stack in stacks]
            return AgentReport(pid, kind, {**_owner(fields), "first": _first(fields), "stacks": places_of_stacks})
        case "collectives":
            collectives: dict[str, list[Any]] = {name: _integers(fields, name) for name in _COLLECTIVE_NUMBERS}
            collectives |= {name: _texts(fields, name) for name in _COLLECTIVE_TEXTS}
            collectives |= {name: _flags(fields, name) for name in _COLLECTIVE_FLAGS}
            _check_lengths(kind, collectives)
            return AgentReport(pid, kind, {**_owner(fields), **collectives})
        case "threads":
            threads: dict[str, list[Any]] = {"name": _texts(fields, "name"), "task": _integers(fields, "task", _INT32)}
            threads |= {"is_main": _flags(fields, "is_main"), "stack": _integers(fields, "stack", MOST_NAMED - 1)}
            _check_lengths(kind, threads)
            moments = {name: _integer(fields, name, 0, _INT64, default=0) for name in _THREAD_TIMES}
            return AgentReport(pid, kind, {**_owner(fields), **moments, **threads})
        case "thread":
            positions = {name: _column(fields, name) for name in _THREAD_COLUMNS}
            at = _integers(fields, "at_unix_ns")
            if any(len(column) != len(at) for column in positions.values()):
                raise ValueError("thread: all columns must be as long as at_unix_ns")
            if any(value is not None and value < 0 for column in positions.values() for value in column):
                raise ValueError("thread: must hold integers of at least 0")
            cores = {name: _optional(fields, name) for name in _CORES}
            return AgentReport(pid, kind, {"capture": _capture(fields), **positions, "at_unix_ns": at, **cores})
        case "modules":
            modules = _modules(fields)
            first = _integer(fields, "first", 0, MOST_MODULES - 1)
            return AgentReport(pid, kind, {"capture": _capture(fields), "first": first, **modules})
        case "collections":
            starts, durations = _integers(fields, "start_unix_ns"), _integers(fields, "duration_ns")
            if len(starts) != len(durations):
                raise ValueError("collections: start_unix_ns and duration_ns must be equally long")
            marks = {"start_unix_ns": starts, "duration_ns": durations}
            return AgentReport(pid, kind, {"capture": _capture(fields), **marks})
        case "short" | "memory":
            numbers = {name: _integer(fields, name, 0, _INT64) for name in _AMOUNTS[kind]}
            flags = {"recording": fields.get("recording") is True} if kind == "short" else {}
            return AgentReport(pid, kind, {"capture": _capture(fields), **numbers, **flags})
        case "bye":
            return AgentReport(pid, kind, {"capture": _capture(fields), "reason": _text(fields, "reason")})
        case _:
            return AgentReport(pid, kind, {"capture": _capture(fields)})


def _integer(fields: dict[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    value = fields.get(name, default)
    if value is None:
        value = default
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name}: must be an integer from {low} to {high}")
    return value


def _optional(fields: dict[str, Any], name: str) -> int | None:
    return None if fields.get(name) is None else _integer(fields, name, 0, _INT32)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"{name}: must be text of at most {MAX_TEXT} characters")
    return "".join(character if " " <= character <= "~" else "?" for character in value)


def _matching(fields: dict[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{name}: must match {pattern.pattern}")
    return value


def _capture(fields: dict[str, Any]) -> str:
    return _matching(fields, "capture", _CAPTURE)


def _owner(fields: dict[str, Any]) -> dict[str, str]:
    """The capture or the question that rows belong to."""
    query = _matching(fields, "query", _CAPTURE)
    return {"query": query} if query else {"capture": _capture(fields)}


def _flags(fields: dict[str, Any], name: str) -> list[bool]:
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > MAX_ROWS or any(type(one) is not bool for one in values):
        raise ValueError(f"{name}: must be a list of true and false, of at most {MAX_ROWS}")
    return values


def _check_lengths(kind: str, columns: Mapping[str, list[Any]]) -> None:
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"{kind}: {', '.join(columns)} must be equally long")


def _column(fields: dict[str, Any], name: str) -> list[int | None]:
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > MAX_ROWS:
        raise ValueError(f"{name}: must be a list of at most {MAX_ROWS} integers")
    for value in values:
        if value is not None and (type(value) is not int or not -_INT64 <= value <= _INT64):
            raise ValueError(f"{name}: must hold 64-bit integers or null")
    return values


def _integers(fields: dict[str, Any], name: str, high: int = _INT64) -> list[int]:
    return _numbers(name, fields.get(name), MAX_ROWS, high)


def _numbers(name: str, values: Any, most: int, high: int) -> list[int]:
    if not isinstance(values, list) or len(values) > most:
        raise ValueError(f"{name}: must be a list of at most {most} integers")
    if any(type(value) is not int or not 0 <= value <= high for value in values):
        raise ValueError(f"{name}: must hold integers from 0 to {high}")
    return values


def _texts(fields: dict[str, Any], name: str) -> list[str]:
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > MOST_NAMED:
        raise ValueError(f"{name}: must be a list of at most {MOST_NAMED} texts")
    return [_text({name: value}, name) for value in values]


def _modules(fields: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns of `ModuleColumns`: by the type of what each holds."""
    columns: dict[str, list[Any]] = {}
    for name, kind in _MODULE_COLUMNS.items():
        if kind == list[str]:
            columns[name] = _texts(fields, name)
        elif kind == list[int]:
            columns[name] = _integers(fields, name, _INT32)
        else:
            columns[name] = _column(fields, name)
            if any(value is not None and value < 0 for value in columns[name]):
                raise ValueError(f"{name}: must hold integers of at least 0")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("modules: all columns must be equally long")
    return columns


def _first(fields: dict[str, Any]) -> int:
    return _integer(fields, "first", 0, MOST_NAMED - 1)
