"""The end of every rank of a request, and why: the record a user reads when a capture is not whole.

Guarantees: a rank's state only moves forward (`merge_entries` is commutative, associative and idempotent), so the hub
can rebuild a ledger from any mixture of its own last copy and what sidecars restate, in any order. Every failed rank
has a reason from `Reason` and a sentence that says what to do. Times are Unix nanoseconds, 0 where not reached.
"""

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

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
    """The reason why a rank has no trace in the store. CamelCase, for machines; documented in docs/reasons.md."""

    NOT_POLLING = "NotPolling"  # nothing in this process asks for Kineto configs any more
    BUSY = "Busy"  # another profile was running in the process until the deadline
    TOO_LATE = "TooLate"  # the process fetched its order after the start had passed, or never
    NOT_STARTED = "NotStarted"  # the config was delivered and the start passed without a trace
    NOT_STEPPING = "NotStepping"  # the optimizer step that should start or end the window never came
    CANCELLED_BY_USER_PROFILER = "CancelledByUserProfiler"  # the job's own torch.profiler took precedence
    CANNOT_WRITE = "CannotWrite"  # traced, but no file appeared: directory, permission or disk
    PROCESS_EXITED = "ProcessExited"  # the process ended before its trace was complete
    PROCESS_KILLED = "ProcessKilled"  # it ended by a signal or crash: no orderly end
    WRONG_TRACE = "WrongTrace"  # the file carries another request's id
    EMPTY_TRACE = "EmptyTrace"  # the file holds no event
    CORRUPT_TRACE = "CorruptTrace"  # the file cannot be read to its end
    TRACE_TOO_LARGE = "TraceTooLarge"  # limits.maxTraceBytes
    NO_MEMORY = "NoMemory"  # recording would not fit, or did not, into the memory that the job may still take
    SLOWDOWN = "Slowdown"  # limits.maxSlowdownPercent
    SPOOL_FULL = "SpoolFull"  # the sidecar's spool limit
    DISK_FULL = "DiskFull"  # no space on the volume
    SUMMARY_FAILED = "SummaryFailed"  # traces: Summary, and none could be made of the trace
    UPLOAD_FAILED = "UploadFailed"  # the store refused for good, or until the deadline
    SIDECAR_LOST = "SidecarLost"  # the sidecar did not come back before the deadline
    POD_ENDED = "PodEnded"  # the pod ended, and with it its volume, before the store had the trace
    SIDECAR_RESTARTED = "SidecarRestarted"  # the sidecar came back, and could not go on with this capture
    OVER_LIMIT = "OverLimit"  # the order asked for more than the sidecar itself allows
    CANCELLED = "Cancelled"  # by the user, or by an uninstall
    DEADLINE_EXCEEDED = "DeadlineExceeded"  # activeDeadlineSeconds
    INTERNAL = "Internal"  # our own fault; the message says where


class Canceller(StrEnum):
    """The one who took a capture back, in words that follow "cancelled by"."""

    USER = "the user"
    UNINSTALL = "the uninstallation of fleetprof"


class RecordingCost(msgspec.Struct, kw_only=True, frozen=True):
    """The memory that one recording took, as measured in the process: `RecordingCost` of hub.proto. 0: not known."""

    iterations: Annotated[int, Meta(description="training iterations in the window; 0 in a window by time")] = 0
    events: Annotated[int, Meta(description="events in the trace, of any kind")] = 0
    trace_bytes: Annotated[int, Meta(description="length of the trace as written, bytes")] = 0
    memory_before_bytes: Annotated[int, Meta(description="resident memory before the recording, bytes")] = 0
    memory_peak_bytes: Annotated[int, Meta(description="the most of it, writing included, bytes")] = 0
    memory_after_bytes: Annotated[
        int, Meta(description="the same after the trace was written and memory given back, bytes")
    ] = 0


class TimeCost(msgspec.Struct, kw_only=True, frozen=True):
    """The effect of one recording on the rank's training iterations: `TimeCost` of hub.proto. 0: not known."""

    iteration_before_ns: Annotated[int, Meta(description="median iteration before the recording")] = 0
    longest_before_ns: Annotated[
        int, Meta(description="longest iteration before the recording, of those that compare")
    ] = 0
    iteration_ns: Annotated[int, Meta(description="median of the recorded iterations")] = 0
    stall_ns: Annotated[
        int, Meta(description="what the longest iteration took more, from the window's end until the trace was there")
    ] = 0
    compared_before: Annotated[
        int, Meta(description="iterations before the recording at the same point of the job's own rhythm")
    ] = 0
    alike_before: Annotated[
        int, Meta(description="those of them that were at least half as long as the recorded ones")
    ] = 0
    rhythm_iterations: Annotated[
        int, Meta(description="the job's own long iterations come every so many; 0: no rhythm was found")
    ] = 0
    iterations_after: Annotated[int, Meta(description="iterations after that, as far as was looked")] = 0

    @property
    def slowdown_percent(self) -> int:
        """The percent that the recorded iterations took longer; 0 when that is not known, or they did not."""
        if not self.iteration_before_ns:
            return 0
        return max(0, 100 * (self.iteration_ns - self.iteration_before_ns) // self.iteration_before_ns)


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
    recording_cost: RecordingCost | None = None
    time_cost: TimeCost | None = None


class RecordingEstimate(msgspec.Struct, kw_only=True, frozen=True):
    """The cost of one recorded iteration: `RecordingEstimate` of hub.proto. 0: not known."""

    events_per_iteration: int = 0
    memory_bytes_per_iteration: int = 0
    trace_bytes_per_iteration: int = 0


class CanaryVerdict(StrEnum):
    """The end of a canary."""

    NONE = ""  # it has not ended
    NOT_NEEDED = "NotNeeded"  # there was none; the message says why
    UNHARMED = "Unharmed"
    HARMED = "Harmed"
    FAILED = "Failed"  # it has no trace, and did no harm


class Canary(msgspec.Struct, kw_only=True):
    """The one rank that recorded one iteration before the others were asked. `entry` is its line; not one of them.

    `earlier` are the costs of tries before that line's, each of which was slow.
    """

    verdict: CanaryVerdict = CanaryVerdict.NONE
    message: str = ""
    tries: int = 0
    earlier: list[TimeCost] = []
    entry: LedgerEntry | None = None


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
    requester: str = ""  # who asked, by admission's word; "unknown" where nobody vouches, "" in local mode
    start_mode: str = ""  # "step", "time" or "" while nothing is armed
    first_step: int | None = None
    start_unix_ns: int | None = None  # asked start, mode "time"
    duration_ns: int = 0  # of the window, mode "time"
    deliver_until_unix_ns: int = 0  # orders that no process fetched by then are withdrawn
    submitted_unix_ns: int = 0
    queued_ns: int = 0  # how long it waited for its turn, which does not count for its deadline
    queued_since_unix_ns: int = 0  # it waits since then, beside that; 0: it does not
    armed_unix_ns: int = 0
    estimate: RecordingEstimate | None = None  # what the ranks were told; None: nothing was known
    iterations: int = 0  # of the window, where it was made shorter than asked
    plans: int = 0  # how often a start was agreed on; 2 where no rank took its first order in time
    cancelled_unix_ns: int = 0  # a cancel came
    cancelled_by: Canceller = Canceller.USER  # of meaning where it did
    completed_unix_ns: int = 0
    outcome: str = ""  # reason of the Succeeded condition
    message: str = ""
    conditions: list[Condition] = []
    entries: list[LedgerEntry] = []
    canary: Canary | None = None  # None: not decided yet
    labels: dict[str, str] = {}  # of pods, those that all asked ranks share


def merge_entries(a: LedgerEntry, b: LedgerEntry) -> LedgerEntry:
    """Joins two accounts of the same (sidecar, process): the further state wins, times are the first known.

    Every field is joined by itself through the greater of two values in a total order (a join-semilattice), so neither
    order nor grouping nor repetition matters. Raises ValueError when the two are not about the same process.
    """
    if (a.rank, a.process_id) != (b.rank, b.process_id):
        raise ValueError(f"rank {a.rank}/{a.process_id} and rank {b.rank}/{b.process_id} are different lines")
    further = a if _ORDER[a.state] > _ORDER[b.state] else b
    state = max(a, b, key=_standing) if a.state is b.state else further
    file = a if _file(a) >= _file(b) else b
    # Field by field, not in a loop over names: this is most of what an event costs, and ten thousand ranks send many.
    return msgspec.structs.replace(
        state,
        compressed_bytes=file.compressed_bytes,
        sha256=file.sha256,
        trace_bytes=file.trace_bytes,
        asked_unix_ns=_earlier(a.asked_unix_ns, b.asked_unix_ns),
        armed_unix_ns=_earlier(a.armed_unix_ns, b.armed_unix_ns),
        started_unix_ns=_earlier(a.started_unix_ns, b.started_unix_ns),
        written_unix_ns=_earlier(a.written_unix_ns, b.written_unix_ns),
        uploaded_unix_ns=_earlier(a.uploaded_unix_ns, b.uploaded_unix_ns),
        failed_unix_ns=_earlier(a.failed_unix_ns, b.failed_unix_ns),
        sidecar_id=_greater(a.sidecar_id, b.sidecar_id),
        pod_name=_greater(a.pod_name, b.pod_name),
        pod_uid=_greater(a.pod_uid, b.pod_uid),
        node_name=_greater(a.node_name, b.node_name),
        pid=a.pid if a.pid >= b.pid else b.pid,
        recording_cost=a.recording_cost if _cost(a.recording_cost) >= _cost(b.recording_cost) else b.recording_cost,
        time_cost=a.time_cost if _time(a.time_cost) >= _time(b.time_cost) else b.time_cost,
        rank_source=a.rank_source if _source(a.rank_source) >= _source(b.rank_source) else b.rank_source,
    )


def _earlier(a_unix_ns: int, b_unix_ns: int) -> int:
    """The first of two times; 0 is not known."""
    if a_unix_ns and b_unix_ns:
        return a_unix_ns if a_unix_ns <= b_unix_ns else b_unix_ns
    return a_unix_ns or b_unix_ns


def _greater(a: str, b: str) -> str:
    return a if a is b or a >= b else b


def _source(source: str) -> tuple[bool, str]:
    return source != "RANK_UNKNOWN", source


def _standing(entry: LedgerEntry) -> tuple[int, str, str]:
    """State, reason and message belong together; the greater one stands."""
    return _ORDER[entry.state], entry.reason or "", entry.message


def _file(entry: LedgerEntry) -> tuple[int, str, int]:
    """Sizes and checksum belong together; what was stored knows more than what was only written."""
    return entry.compressed_bytes, entry.sha256, entry.trace_bytes


def _cost(cost: RecordingCost | None) -> tuple[int, ...]:
    """Merges costs, of which the last measurement knows most: the peak and what remains come after the rest."""
    if cost is None:
        return ()
    return (
        cost.memory_after_bytes,
        cost.memory_peak_bytes,
        cost.memory_before_bytes,
        cost.events,
        cost.trace_bytes,
        cost.iterations,
    )


def _time(cost: TimeCost | None) -> tuple[int, ...]:
    """Merges costs in time, of which the last measurement has seen the most iterations."""
    return () if cost is None else tuple(reversed(msgspec.structs.astuple(cost)))


def is_final(entry: LedgerEntry) -> bool:
    """Tells whether this rank's line can change no more."""
    return entry.state in (RankState.UPLOADED, RankState.FAILED)
