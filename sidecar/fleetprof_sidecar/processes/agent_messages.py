"""The agents' messages, checked: types and ranges of every field, before anything of it is believed or kept.

Guarantees: `parse_agent_message` raises nothing but ValueError, whatever the bytes; every text is printable ASCII of
bounded length, every number within the range of the protobuf field it ends up in, every column as long as its
neighbors. Unknown fields are dropped. The messages are those of `fleetprof_agent.wire`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args, get_type_hints

from fleetprof_agent import wire
from fleetprof_agent.samples import nvml
from fleetprof_api.samples import MOST_MODULES, DeviceColumns, HeldColumns, ModuleColumns, ThreadColumns
from fleetprof_api.stacks import RecordedCollective

from fleetprof_sidecar.processes.agent_fields import (
    INT32,
    INT64,
    MOST_NAMED,
    read_column,
    read_columns,
    read_flags,
    read_integer,
    read_integers,
    read_matching,
    read_numbers,
    read_optional,
    read_text,
    read_texts,
)

_CAPTURE: Final = re.compile(r"[a-z0-9-]{0,63}")
_SOCKET_NAME: Final = re.compile(r"(dynoconfigclient[A-Za-z0-9-]{1,64})?")
_AMOUNTS: Final = {
    "short": ("headroom_bytes", "needed_bytes"),
    "memory": ("before_bytes", "peak_bytes", "after_bytes"),
}
_OWN_PROFILE: Final = re.compile(r"(warmup|active)?")
_DEVICE_COLUMNS: Final = tuple(DeviceColumns.__struct_fields__)
# Of each column, what it holds.
_MODULE_COLUMNS: Final = {name: get_args(column)[0] for name, column in get_type_hints(ModuleColumns).items()}
_THREAD_COLUMNS: Final = tuple(name for name in ThreadColumns.__struct_fields__ if name != "at_unix_ns")
_TELEMETRY: Final = (*nvml.FIELDS, *nvml.HEALTH_FIELDS)
_COLLECTIVE_COLUMNS: Final = get_type_hints(RecordedCollective)
_STACK_COLUMNS: Final = {"name": str, "task": int, "is_main": bool, "stack": int}
_MOMENTS: Final = ("at_unix_ns", "step", "step_unix_ns")
_CORES: Final = ("usable_cores", "cpu_limit_millicores", "torch_threads")
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class AgentHello:
    """The process that an agent lives in. None and "": the agent does not know either."""

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
    """The progress of the training: `step` optimizer steps at `at_unix_ns`. 0: not known."""

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
    """The state of the job's own torch.profiler: "" (nothing), "warmup" or "active"."""

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
    pid = read_integer(fields, "pid", 1, INT32)
    match kind:
        case "hello":
            return AgentHello(
                pid=pid,
                ppid=read_integer(fields, "ppid", 0, INT32, default=0),
                uid=read_integer(fields, "uid", 0, 2**32 - 1, default=0),
                rank=read_optional(fields, "rank"),
                local_rank=read_optional(fields, "local_rank"),
                world_size=read_optional(fields, "world_size"),
                restart_count=read_integer(fields, "restart_count", 0, INT32, default=0),
                role=read_text(fields, "role"),
                torch=read_text(fields, "torch"),
                python=read_text(fields, "python"),
                device_kind=read_text(fields, "device_kind"),
                device_name=read_text(fields, "device_name"),
                device_uuid=read_text(fields, "device_uuid"),
                host=read_text(fields, "host"),
                started_unix_ns=read_integer(fields, "started_unix_ns", 0, INT64, default=0),
                kineto=read_matching(fields, "kineto", _SOCKET_NAME),
            )
        case "steps":
            return AgentSteps(
                pid=pid,
                step=read_integer(fields, "step", 0, INT64),
                at_unix_ns=read_integer(fields, "at_unix_ns", 0, INT64),
                iteration_ns=read_integer(fields, "iteration_ns", 0, INT64, default=0),
                per_iteration=read_integer(fields, "per_iteration", 1, 10_000, default=1),
                fastest_iteration_ns=read_integer(fields, "fastest_iteration_ns", 0, INT64, default=0),
                headroom_bytes=read_integer(fields, "headroom_bytes", 0, INT64, default=0),
                own_profile=read_matching(fields, "own_profile", _OWN_PROFILE),
            )
        case "profile":
            return AgentProfile(pid=pid, own_profile=read_matching(fields, "own_profile", _OWN_PROFILE))
        case "times":
            steps = read_integers(fields, "step")
            ends = read_integers(fields, "end_unix_ns")
            if len(steps) != len(ends):
                raise ValueError("times: step and end_unix_ns must be equally long")
            return AgentReport(pid, kind, {"capture": _capture(fields), "step": steps, "end_unix_ns": ends})
        case "device":
            columns = {name: read_column(fields, name) for name in _DEVICE_COLUMNS if fields.get(name) is not None}
            rows = read_integers(fields, "at_unix_ns")
            if any(len(column) != len(rows) for column in columns.values()):
                raise ValueError("device: all columns must be as long as at_unix_ns")
            return AgentReport(pid, kind, {"capture": _capture(fields), **columns, "at_unix_ns": rows})
        case "telemetry":
            telemetry = {
                name: read_integer(fields, name, 0, INT64) for name in _TELEMETRY if fields.get(name) is not None
            }
            when = {name: read_integer(fields, name, 0, INT64) for name in ("at_unix_ns", "step")}
            return AgentReport(pid, kind, {**when, "values": telemetry})
        case "places":
            lines = read_integers(fields, "line", INT32)
            files, functions = read_texts(fields, "file"), read_texts(fields, "function")
            if not len(lines) == len(files) == len(functions):
                raise ValueError("places: file, function and line must be equally long")
            generators = read_flags(fields, "generator") if "generator" in fields else [False] * len(lines)
            if len(generators) != len(lines):
                raise ValueError("places: generator must be as long as line")
            places = {"file": files, "function": functions, "line": lines, "generator": generators}
            return AgentReport(pid, kind, {**_owner(fields), "first": _first(fields), **places})
        case "stacks":
            stacks = fields.get("stacks")
            if not isinstance(stacks, list) or len(stacks) > MOST_NAMED:
                raise ValueError(f"stacks: must be a list of at most {MOST_NAMED} stacks")
            places_of_stacks = [read_numbers("stacks", stack, _DEEPEST, MOST_NAMED - 1) for stack in stacks]
            return AgentReport(pid, kind, {**_owner(fields), "first": _first(fields), "stacks": places_of_stacks})
        case "collectives":
            return AgentReport(pid, kind, {**_owner(fields), **read_columns(kind, fields, _COLLECTIVE_COLUMNS, INT64)})
        case "threads":
            moments = {name: read_integer(fields, name, 0, INT64, default=0) for name in _MOMENTS}
            threads = read_columns(kind, fields, _STACK_COLUMNS, INT32)
            threads["call"] = read_texts(fields, "call") if "call" in fields else [""] * len(threads["name"])
            if len(threads["call"]) != len(threads["name"]):
                raise ValueError("threads: call must be as long as name")
            return AgentReport(pid, kind, {**_owner(fields), **moments, **threads})
        case "thread":
            positions = {name: read_column(fields, name) for name in _THREAD_COLUMNS}
            at = read_integers(fields, "at_unix_ns")
            if any(len(column) != len(at) for column in positions.values()):
                raise ValueError("thread: all columns must be as long as at_unix_ns")
            if any(value is not None and value < 0 for column in positions.values() for value in column):
                raise ValueError("thread: must hold integers of at least 0")
            cores = {name: read_optional(fields, name) for name in _CORES}
            return AgentReport(pid, kind, {"capture": _capture(fields), **positions, "at_unix_ns": at, **cores})
        case "modules":
            modules = read_columns(kind, fields, _MODULE_COLUMNS, INT32)
            first = read_integer(fields, "first", 0, MOST_MODULES - 1)
            return AgentReport(pid, kind, {"capture": _capture(fields), "first": first, **modules})
        case "collections":
            starts, durations = read_integers(fields, "start_unix_ns"), read_integers(fields, "duration_ns")
            if len(starts) != len(durations):
                raise ValueError("collections: start_unix_ns and duration_ns must be equally long")
            marks = {"start_unix_ns": starts, "duration_ns": durations}
            return AgentReport(pid, kind, {"capture": _capture(fields), **marks})
        case "held":
            looks = {name: read_integers(fields, name) for name in HeldColumns.__struct_fields__}
            if len(looks["at_unix_ns"]) != len(looks["own_bytes"]):
                raise ValueError("held: at_unix_ns and own_bytes must be equally long")
            return AgentReport(pid, kind, {"capture": _capture(fields), **looks})
        case "short" | "memory":
            numbers = {name: read_integer(fields, name, 0, INT64) for name in _AMOUNTS[kind]}
            flags = {"recording": fields.get("recording") is True} if kind == "short" else {}
            return AgentReport(pid, kind, {"capture": _capture(fields), **numbers, **flags})
        case "bye":
            return AgentReport(pid, kind, {"capture": _capture(fields), "reason": read_text(fields, "reason")})
        case _:
            return AgentReport(pid, kind, {"capture": _capture(fields)})


def _capture(fields: dict[str, Any]) -> str:
    return read_matching(fields, "capture", _CAPTURE)


def _owner(fields: dict[str, Any]) -> dict[str, str]:
    """The capture or the question that rows belong to."""
    query = read_matching(fields, "query", _CAPTURE)
    return {"query": query} if query else {"capture": _capture(fields)}


def _first(fields: dict[str, Any]) -> int:
    return read_integer(fields, "first", 0, MOST_NAMED - 1)
