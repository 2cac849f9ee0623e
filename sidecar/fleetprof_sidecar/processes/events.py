"""The events of a process and to the order that it was given: what the process table tells its subscribers.

A capture's own events (`capture.events`) add to these; none of these is defined a second time there.

Guarantees: plain values, safe to hand to any thread; each names its process.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Changed:
    """A process appeared, or its role, rank or agent changed."""

    process_id: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """The kernel put the config into the process's socket, in answer to its idle poll."""

    process_id: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class Expired:
    """The order was never delivered, and is dropped.

    why: "time" (no poll came until the deadline), "busy" (polls came, none of them idle), "own" (as "busy", and its
    agent says that it was the job's own profiler), "step" (the process is too far for its first step), "role" (it has
    shown itself to be a launcher or a worker since).
    last_poll_unix_ns: the process's latest poll; 0 when it does not poll any more.
    """

    process_id: str
    why: str
    at_unix_ns: int
    last_poll_unix_ns: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """The process ended; orderly_end: its agent said goodbye, so the interpreter ended in the orderly way."""

    process_id: str
    at_unix_ns: int
    orderly_end: bool


@dataclass(frozen=True, slots=True)
class BusyChanged:
    """The profiler says that a trace runs in the process (or the user's own profiler), or no longer.

    step: the process's latest known step.
    """

    process_id: str
    busy: bool
    at_unix_ns: int
    step: int | None = None


@dataclass(frozen=True, slots=True)
class OwnProfileBegan:
    """The job's own profiler has taken Kineto's slot, as its agent says: Kineto drops what it had of ours."""

    process_id: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A checked message of the process's agent: fields of wire.py, "t" among them."""

    process_id: str
    fields: dict[str, Any]


ProcessEvent = Changed | Delivered | Expired | Gone | BusyChanged | OwnProfileBegan | AgentMessage
