"""What happened to every rank of a request, and why: the record a user reads when a capture is not whole.

Guarantees: a rank's state only moves forward (`merge_entries` is commutative, associative and idempotent), so the hub
can rebuild a ledger from any mixture of its own last copy and what sidecars restate, in any order. Every failed rank
has a reason from `Reason` and a sentence that says what to do. Times are Unix nanoseconds, 0 where not reached.
"""

from enum import StrEnum
from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1


class RankState(StrEnum):
    """Progress of one rank; same names as `RankState` of hub.proto."""

    ASKED = "ASKED"
    ARMED = "ARMED"
    STARTED = "STARTED"
    WRITTEN = "WRITTEN"
    UPLOADED = "UPLOADED"
    FAILED = "FAILED"


_ORDER: Final = {
    RankState.ASKED: 1,
    RankState.ARMED: 2,
    RankState.STARTED: 3,
    RankState.WRITTEN: 4,
    RankState.FAILED: 5,
    # The highest: a trace that the store holds is delivered whatever else was thought of its rank.
    RankState.UPLOADED: 6,
}


class Reason(StrEnum):
    """Why a rank has no trace in the store. CamelCase, for machines; documented in docs/reasons.md."""

    NOT_POLLING = "NotPolling"  # nothing in this process asks for Kineto configs any more
    BUSY = "Busy"  # another profile was running in the process until the deadline
    TOO_LATE = "TooLate"  # the process fetched its order after the start had passed, or never
    NOT_STARTED = "NotStarted"  # the config was delivered and the start passed without a trace
    NOT_STEPPING = "NotStepping"  # the optimizer step that should start or end the window never came
    CANCELLED_BY_USER_PROFILER = "CancelledByUserProfiler"  # the job's own torch.profiler took precedence
    CANNOT_WRITE = "CannotWrite"  # traced, but no file appeared: directory, permission or disk
    PROCESS_EXITED = "ProcessExited"  # the process ended before its trace was complete
    PROCESS_KILLED = "ProcessKilled"  # it ended by a signal or crash: no farewell
    WRONG_TRACE = "WrongTrace"  # the file carries another request's id
    EMPTY_TRACE = "EmptyTrace"  # the file holds no event
    CORRUPT_TRACE = "CorruptTrace"  # the file cannot be read to its end
    TRACE_TOO_LARGE = "TraceTooLarge"  # limits.maxTraceBytes
    SLOWDOWN = "Slowdown"  # limits.maxSlowdownPercent
    SPOOL_FULL = "SpoolFull"  # the sidecar's spool limit
    DISK_FULL = "DiskFull"  # no space on the volume
    SUMMARY_FAILED = "SummaryFailed"  # traces: Summary, and none could be made of the trace
    UPLOAD_FAILED = "UploadFailed"  # the store refused for good, or until the deadline
    SIDECAR_LOST = "SidecarLost"  # the sidecar did not come back before the deadline
    POD_ENDED = "PodEnded"  # the pod ended, and with it its volume, before the store had the trace
    SIDECAR_RESTARTED = "SidecarRestarted"  # the sidecar came back, and could not go on with this capture
    CANCELLED = "Cancelled"  # by the user
    DEADLINE_EXCEEDED = "DeadlineExceeded"  # activeDeadlineSeconds
    INTERNAL = "Internal"  # our own fault; the message says where


class LedgerEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=False):
    """One rank's line. `process_id` is unique within `sidecar_id`; a rank restarted by torchrun has one line each."""

    rank: int
    process_id: str
    sidecar_id: str = ""
    pod_name: str = ""
    pod_uid: str = ""  # as the sidecar's token proved it; empty in local mode
    node_name: str = ""
    pid: int = 0
    rank_source: str = "RANK_UNKNOWN"
    state: RankState = RankState.ASKED
    reason: Reason | None = None
    message: str = ""
    asked_unix_ns: int = 0
    armed_unix_ns: int = 0
    started_unix_ns: int = 0
    written_unix_ns: int = 0
    uploaded_unix_ns: int = 0
    failed_unix_ns: int = 0
    trace_bytes: int = 0
    compressed_bytes: int = 0
    sha256: str = ""


class Condition(msgspec.Struct, kw_only=True):
    """One aspect of a request (Kubernetes' metav1.Condition): status is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str
    message: str = ""
    transition_unix_ns: int = 0  # when `status` last changed


class Ledger(msgspec.Struct, kw_only=True):
    """`ledger.json`: all ranks of one request, in rank order, and how the request as a whole stands."""

    schema_version: int = SCHEMA_VERSION
    uid: str
    name: str
    namespace: str
    start_mode: str = ""  # "step", "time" or "" while nothing is armed
    first_step: int | None = None
    start_unix_ns: int | None = None  # asked start, mode "time"
    duration_ns: int = 0  # of the window, mode "time"
    deliver_until_unix_ns: int = 0  # orders that no process fetched by then are withdrawn
    submitted_unix_ns: int = 0
    armed_unix_ns: int = 0
    plans: int = 0  # how often a start was agreed on; 2 where no rank took its first order in time
    cancelled_unix_ns: int = 0  # the user's cancel came
    completed_unix_ns: int = 0
    outcome: str = ""  # reason of the Succeeded condition
    message: str = ""
    conditions: list[Condition] = []
    entries: list[LedgerEntry] = []


def merge_entries(a: LedgerEntry, b: LedgerEntry) -> LedgerEntry:
    """Joins two accounts of the same (sidecar, process): the further state wins, times are the first known.

    Every field is joined by itself through the greater of two values in a total order (a join-semilattice), so neither
    order nor grouping nor repetition matters. Raises ValueError when the two are not about the same process.
    """
    if (a.rank, a.process_id) != (b.rank, b.process_id):
        raise ValueError(f"rank {a.rank}/{a.process_id} and rank {b.rank}/{b.process_id} are different lines")
    merged = msgspec.structs.replace(max(a, b, key=_standing))
    file = max(a, b, key=_file)
    merged.compressed_bytes, merged.sha256, merged.trace_bytes = _file(file)
    for field in _TIMES:
        known = [t for t in (getattr(a, field), getattr(b, field)) if t]
        setattr(merged, field, min(known) if known else 0)
    for field in _FACTS:
        setattr(merged, field, max(getattr(a, field), getattr(b, field)))
    merged.rank_source = max(a.rank_source, b.rank_source, key=lambda source: (source != "RANK_UNKNOWN", source))
    return merged


_TIMES: Final = (
    "asked_unix_ns",
    "armed_unix_ns",
    "started_unix_ns",
    "written_unix_ns",
    "uploaded_unix_ns",
    "failed_unix_ns",
)
_FACTS: Final = ("sidecar_id", "pod_name", "pod_uid", "node_name", "pid")


def _standing(entry: LedgerEntry) -> tuple[int, str, str]:
    """State, reason and message belong together; the greater one stands."""
    return _ORDER[entry.state], entry.reason or "", entry.message


def _file(entry: LedgerEntry) -> tuple[int, str, int]:
    """Sizes and checksum belong together; what was stored knows more than what was only written."""
    return entry.compressed_bytes, entry.sha256, entry.trace_bytes


def is_final(entry: LedgerEntry) -> bool:
    """Tells whether this rank's line can change no more."""
    return entry.state in (RankState.UPLOADED, RankState.FAILED)
