"""A simulated job and its faults. Its step count is a function of time: steps cost nothing."""

import time
from dataclasses import dataclass, field

NS = 10**9


@dataclass
class Faults:
    """The faults of this rank; the defaults are a healthy trainer."""

    never_polls: bool = False
    first_poll_after_s: float = 0.0
    exits_after_s: float = 0.0  # 0: never
    exits_before_capture: bool = False  # as soon as it has taken a config
    exits_mid_capture: bool = False
    exits_after_capture: bool = False
    orderly_end: bool = False  # whether the exit is orderly: the agent says bye
    ignores_orders: bool = False  # takes the config, never traces
    user_profiler: bool = False  # the job's own profiler cancels the trace: an empty .tmp stays
    always_busy: bool = False
    wrong_trace_id: bool = False
    empty_trace: bool = False
    truncated_trace: bool = False
    no_file: bool = False
    late_steps: int = 0  # begins its window so many steps too late
    silent_agent: bool = False  # the agent is there, but never answers an arm, cancel or done
    trace_bytes: int = 0  # pads the trace to at least this size


@dataclass
class SimulatedJob:
    """The common part of one job's ranks."""

    world_size: int = 1
    step_s: float = 0.05
    poll_s: float = 1.0
    steps_per_iteration: int = 1
    agent: bool = True
    write_s: float = 0.2  # from the end of the window to the whole file
    started_unix_ns: int = field(default_factory=time.time_ns)
    torch: str = "2.15.0"
    device_kind: str = "cpu"

    @property
    def step_ns(self) -> int:
        """Length of an optimizer step."""
        return int(self.step_s * NS)

    def current_step(self, at_unix_ns: int | None = None) -> int:
        """KinetoStepTracker's count."""
        now = time.time_ns() if at_unix_ns is None else at_unix_ns
        return max(0, (now - self.started_unix_ns) // self.step_ns)

    def end_of(self, step: int) -> int:
        """The end of a step."""
        return self.started_unix_ns + step * self.step_ns
