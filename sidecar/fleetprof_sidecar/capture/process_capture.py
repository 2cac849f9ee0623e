"""One capture on one process: what was asked, where it stands, what is to be done about it.

asked → armed → started → written → uploaded, or failed with a precise reason at any point before. These are values
only; what may happen to a capture is in `events`, the rules that lead from one state to the next are in
`machine`. `ProcessCapture` is what the journal holds and what `CaptureEvent` tells the hub.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec
from fleetprof_api.choices import Collect, Traces
from fleetprof_api.kernel_class import KernelClass
from fleetprof_api.ledger import RankState, Reason, RecordingCost, TimeCost

_CAPTURE_ID: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def check_capture_id(capture_id: str) -> str:
    """The id itself. Raises ValueError unless it is usable in file names and trace ids."""
    if not _CAPTURE_ID.fullmatch(capture_id):
        raise ValueError(f"capture id {capture_id[:80]!r} must be 1 to 63 of a-z 0-9 -, not beginning or ending with -")
    return capture_id


CaptureKey = tuple[str, str]
"""The ids of a capture and of a process in it."""

FINAL: Final = frozenset({RankState.UPLOADED, RankState.FAILED})


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A compressed file in the spool: its name there, sizes in bytes, and SHA-256 (hex) whole and by part."""

    name: str
    size_bytes: int
    sha256: str
    part_sizes: list[int]
    part_sha256: list[str]


class RecordedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The span of an earlier capture in this process: what it did to iterations then is not the job's doing."""

    from_step: int  # 0 in a window by time
    from_unix_ns: int
    until_unix_ns: int

    def touches(self, step: int, begin_unix_ns: int, end_unix_ns: int) -> bool:
        """Tells whether it fell into the iteration from `begin_unix_ns` that ended with this optimizer step."""
        return step >= self.from_step and end_unix_ns > self.from_unix_ns and begin_unix_ns < self.until_unix_ns


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms asked of one process; never changes. Exactly one of `first_step` and `start_unix_ns` is set."""

    capture_id: str
    process_id: str
    rank: int
    pid: int = 0
    uid: int = -1  # whose the trace must be, by the kernel's word on who polls; -1: not known
    has_agent: bool = False
    first_step: int | None = None
    start_unix_ns: int | None = None
    iterations: int = 0
    warmup_iterations: int = 0
    duration_ns: int = 0
    steps_per_iteration: int = 1
    iteration_ns: int = 0  # median before the capture, 0 when unknown
    mean_iteration_ns: int = 0  # over some seconds before, pauses of the job's own included; 0 when unknown
    poll_interval_ns: int = 0
    collect: list[str] = []
    activities: list[str] = []  # none: everything is recorded
    deliver_until_unix_ns: int = 0
    give_up_unix_ns: int = 0
    max_trace_bytes: int = 0
    max_slowdown_percent: int = 0
    sample_interval_ns: int = 0
    thread_samples: bool = False
    traces: Traces = Traces.FULL
    asked_iterations: int = 0  # also in a window by time; 0: a time was asked
    kernel_classes: list[KernelClass] = []
    iteration_range: str = ""  # that bounds an iteration; "": optimizer steps do
    memory_needed_bytes: int = 0  # estimates of what the whole window takes; 0: not known
    trace_needed_bytes: int = 0
    ranks_here: int = 1  # that record at the same time beside this sidecar, and share its pod's or machine's memory
    canary: bool = False  # recorded to learn what it costs; nothing of it is stored
    recorded: list[RecordedSpan] = []  # by earlier captures

    @property
    def trace_id(self) -> str:
        """The id that Kineto writes into the trace, and the stem of its file name."""
        return f"{self.capture_id}-r{self.rank}"

    @property
    def marked_iterations(self) -> int:
        """Iterations behind the measured ones in which the agent marks modules: one, or none."""
        is_marked = Collect.MODULE_TREE in self.collect and self.has_agent and not self.canary
        return int(is_marked and self.first_step is not None)

    @property
    def recorded_iterations(self) -> int:
        """Iterations of the window, the marked one among them; 0 where a time was asked."""
        return self.iterations + self.marked_iterations

    @property
    def measured_step(self) -> int | None:
        """The last optimizer step of the iterations that were asked for, None in a window by time."""
        if self.first_step is None:
            return None
        return self.first_step + max(1, self.iterations) * self.steps_per_iteration - 1

    @property
    def last_step(self) -> int | None:
        """The last optimizer step of the window, None in a window by time."""
        measured = self.measured_step
        return None if measured is None else measured + self.marked_iterations * self.steps_per_iteration

    @property
    def device_counters(self) -> bool:
        """Tells if the device's profiling counters are to be sampled: a job or a monitor may use them for itself."""
        return Collect.DEVICE_METRICS in self.collect

    @property
    def samples_thread(self) -> bool:
        """Tells whether the agent notes where the training thread is: our Python would be in a trace with stacks."""
        return self.thread_samples and Collect.STACKS not in self.collect

    @property
    def warmup_steps(self) -> int:
        """Optimizer steps for which Kineto runs before the window without recording."""
        return self.warmup_iterations * self.steps_per_iteration

    @property
    def touched_from_step(self) -> int:
        """The first step that the recording may make longer, 0 in a window by time."""
        return max(0, (self.first_step or 0) - 1 - self.warmup_steps)

    def is_due(self, now_unix_ns: int, step: int | None) -> bool:
        """Tells whether tracing should have begun: a busy process before that is busy with something else."""
        if self.first_step is not None:
            return step is not None and step >= self.first_step - 2 - self.warmup_steps
        return self.start_unix_ns is not None and now_unix_ns >= self.start_unix_ns


class ProcessCapture(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one capture on one process; everything that must survive a restart of the sidecar."""

    terms: Terms
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
    time_cost: TimeCost | None = None  # once the iterations after it were seen
    cost: RecordingCost | None = None  # once the trace was read, or the agent has measured
    tmp_bytes: int | None = None  # of the `.tmp` file as last seen; None: never seen
    file_name: str = ""  # of the finished trace in the traces directory, while it is checked and compressed
    last_sign_unix_ns: int = 0  # when something of this trace last moved
    due_unix_ns: int = 0  # when tracing was first seen to be due
    orderly_end: bool | None = None  # the process is gone: with (True) or without an orderly end
    settle_unix_ns: int = 0  # when to decide that no file will come, 0: not yet
    cancel_reason: Reason | None = None
    cancel_message: str = ""
    own_profile_unix_ns: int = 0  # when the job's own profiler began since the order was taken
    dropped_by_agent: bool = False  # without being asked: its own time limit, or the exit guard
    trace: StoredFile | None = None
    trace_stored: bool = False
    samples: StoredFile | None = None
    samples_note: str = ""  # why the rank has no samples in the store
    summary: StoredFile | None = None
    summary_note: str = ""  # why there is none
    summary_stored: bool = False
    fetched: bool = False  # the hub asked for the trace that waits here

    @property
    def is_final(self) -> bool:
        """Tells whether nothing can change any more."""
        return self.state in FINAL

    @property
    def keeps_trace(self) -> bool:
        """Tells whether the trace waits in the spool for the hub to ask for it, or to let go."""
        return (
            self.terms.traces is Traces.AUTO
            and self.state == RankState.UPLOADED
            and self.trace is not None
            and not self.trace_stored
        )

    @property
    def awaits_file(self) -> bool:
        """Tells whether Kineto may still write this trace and we want it."""
        return self.state in (RankState.ASKED, RankState.ARMED, RankState.STARTED) and not self.file_name


class Effect(StrEnum):
    """A thing to be done about a capture; everything that is needed for it is in the capture."""

    REPORT = "report"  # tell the hub
    WITHDRAW_ORDER = "withdraw order"  # from the endpoint's queue, when not yet delivered
    CANCEL_IN_PROCESS = "cancel in process"  # the agent drops Kineto's pending or running trace
    TELL_AGENT_DONE = "tell agent done"  # the trace is written: send the times, rest
    COMPRESS = "compress"  # verify and compress `file_name` into the spool
    GATHER_SAMPLES = "gather samples"  # after the after-window, make the samples file
    UPLOAD_TRACE = "upload trace"
    UPLOAD_SAMPLES = "upload samples"
    SUMMARISE = "summarise"  # make the summary of trace and samples
    UPLOAD_SUMMARY = "upload summary"
    STOP_WORK = "stop work"  # end compression and uploads of this capture
    DISCARD = "discard"  # delete every file of it, also one that appears later
