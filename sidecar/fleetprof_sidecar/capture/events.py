"""The events of a capture on one process: the only things that `machine` moves by.

What happens to the process and to its order is the process table's to say (`processes.events`); the rest is here.

Guarantees: plain values; each carries the time at which it happened.
"""

from dataclasses import dataclass
from typing import Literal

from fleetprof_api.ledger import Reason, TimeCost

from fleetprof_sidecar.capture.process_capture import StoredFile
from fleetprof_sidecar.processes.events import BusyChanged, Delivered, Expired, Gone, OwnProfileBegan


@dataclass(frozen=True, slots=True)
class OrderRejected:
    """The order was not accepted for this process."""

    reason: Reason
    message: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class TmpSeen:
    """The unfinished trace is in the directory, `size_bytes` long."""

    size_bytes: int
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class FinalSeen:
    """The finished trace is in the directory."""

    name: str
    size_bytes: int
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class FileChecked:
    """The trace is whole, carries `trace_id`, holds `events`, and lies compressed in the spool as `stored`.

    `optimizer_step`: the process stepped an optimizer in it, so it is a trainer.
    """

    name: str
    trace_id: str
    trace_bytes: int
    stored: StoredFile
    at_unix_ns: int
    optimizer_step: bool = False
    events: int = 0


@dataclass(frozen=True, slots=True)
class FileRejected:
    """The trace is unusable or has no room: WrongTrace, EmptyTrace, CorruptTrace, TraceTooLarge, SpoolFull, …."""

    name: str
    reason: Reason
    message: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class PodEnded:
    """The pod ends, and with it the spool: nothing goes on after this."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """The hub, or a limit, ends this capture."""

    reason: Reason
    message: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class AgentDropping:
    """The agent has begun to drop Kineto's recording; AgentCancelled follows, after some tens of seconds at most."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class AgentEnding:
    """The recording that the agent was asked to drop has its window behind it: Kineto ends and writes it by itself."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class AgentCancelled:
    """The agent dropped Kineto's trace, asked to or by itself (exit guard)."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class MemoryMeasured:
    """The memory that the recording took of the process's resident memory, as its agent saw it."""

    before_bytes: int
    peak_bytes: int
    after_bytes: int
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class TimeMeasured:
    """The effect of the recording on the rank's iterations, as its agent timed them."""

    cost: TimeCost
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed. `step`, `busy`, `last_poll_unix_ns`: the process as last seen, None and 0 when unknown."""

    at_unix_ns: int
    step: int | None = None
    busy: bool | None = None
    last_poll_unix_ns: int = 0
    profiles_itself: bool = False  # a profile of the job's own was seen at some time
    hint: str = ""  # what else was found, e.g. a trace in another directory


@dataclass(frozen=True, slots=True)
class TraceStored:
    """The store holds the trace."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class SamplesReady:
    """The samples file is in the spool; None: there is none, `note` says why."""

    stored: StoredFile | None
    note: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class SamplesStored:
    """The store holds the samples."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class SummaryReady:
    """The summary is in the spool; None: it cannot be made, `note` says why."""

    stored: StoredFile | None
    note: str
    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class SummaryStored:
    """The store holds the summary."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class TraceWanted:
    """The hub asks for the trace of a rank whose summary it has."""

    at_unix_ns: int


@dataclass(frozen=True, slots=True)
class UploadEnded:
    """The upload failed for good. That of the samples does not fail the rank."""

    message: str
    what: Literal["trace", "samples", "summary"]
    at_unix_ns: int


Event = (
    OrderRejected
    | Delivered
    | Expired
    | BusyChanged
    | OwnProfileBegan
    | TmpSeen
    | FinalSeen
    | FileChecked
    | FileRejected
    | PodEnded
    | Gone
    | Cancel
    | AgentDropping
    | AgentEnding
    | AgentCancelled
    | MemoryMeasured
    | TimeMeasured
    | Tick
    | TraceStored
    | SamplesReady
    | SamplesStored
    | SummaryReady
    | SummaryStored
    | TraceWanted
    | UploadEnded
)
