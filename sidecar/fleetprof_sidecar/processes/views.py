"""The process table's views of processes: frozen views.

Guarantees: plain values, safe to hand to any thread.
"""

from dataclasses import dataclass

from fleetprof_agent import wire
from fleetprof_api.errors import FleetprofError

from fleetprof_sidecar.processes.roles import Role


@dataclass(frozen=True, slots=True)
class StepView:
    """Progress as last reported by the agent; see `StepState` of hub.proto."""

    step: int
    at_unix_ns: int
    iteration_ns: int
    steps_per_iteration: int
    fastest_iteration_ns: int = 0
    mean_step_ns: int = 0  # over some seconds, pauses of the job's own included; 0: not known yet

    def latest_step(self, now_unix_ns: int) -> int:
        """The step at which the process is likely to be now.

        A stepping agent reports every wire.REPORT_EVERY_S: when it has been silent for much longer, the training
        stalls (evaluation, checkpoint), and the count is not carried further than one missed report allows.
        """
        if self.iteration_ns <= 0:
            return self.step
        step_ns = self.iteration_ns / self.steps_per_iteration
        carried_ns = min(now_unix_ns - self.at_unix_ns, 2 * wire.REPORT_EVERY_S * 1e9 + 2 * step_ns)
        return self.step + max(0, int(carried_ns / step_ns))


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process as `Process` of hub.proto shows it; `candidate`: place_order would accept it if it is chosen."""

    process_id: str
    pid: int
    uid: int
    role: Role
    candidate: bool
    rank: int | None
    local_rank: int | None
    world_size: int | None
    rank_source: str
    polls_kineto: bool
    has_agent: bool
    agent_waits: bool
    busy: bool  # the profiler's one slot is taken, by a trace of ours or by the job's own profiler
    profiles_itself: bool  # a profile of the job's own was seen at some time
    own_profile: str  # what the job's own profiler is at, as its agent says: "", "warmup" or "active"
    torch_version: str
    python_version: str
    device_kind: str
    device_name: str
    host_name: str
    restart_count: int
    first_seen_unix_ns: int
    last_poll_unix_ns: int
    poll_interval_ns: int
    polls_steadily: bool
    step: StepView | None
    poll_lateness_ns: int = 0
    memory_headroom_bytes: int = 0  # as the agent reads it; 0: not known
    device_uuid: str = ""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The places of a process for housekeeping: its sockets, its visible pid (0: none), and whether /proc was asked."""

    process_id: str
    client_address: str
    agent_address: str
    visible_pid: int
    examined: bool


class OrderRefused(FleetprofError):
    """No order was placed. reason: Unknown, Launcher, Worker, NotChosen, NotPolling, NotStepping, ProfilesItself,
    Outstanding.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
