"""The begin of a capture: one step, or one moment, that every rank can still be told of in time.

Guarantees: pure; no rank is asked for a step or a moment that its next poll would come too late for, as far as polls
keep their rhythm and steps their pace within the allowances below.

Kineto fetches a config only when it polls, so the lead is the time to the *slowest next poll*:

    P  = max over ranks of (first expected poll after now + send time + margin)
         margin = 1 s + interval / 10 + the lateness of recent polls, 5 s at most
    step mode   F = max over ranks of (step + ceil((P - at) * pace)) + w * p + 2, moved up until (F - 1) % p == 0
                pace: steps per second, a tenth more than the median, or that of the fastest recent steps if they were
                quicker still, threefold at most
    time mode   T0 = P + the profiler's warm-up and margin + 0.25 s

What a profiler needs is its own (`fleetprof_api.profiler`); the numbers here are Kineto's, which any process has that
names no other.

`F` is the first complete step in KinetoStepTracker's count; Kineto is sent F - 2 and begins inside the hook of step
F - 1, hence + 2. `p` is the number of optimizer steps per training iteration: a window must not cut one in two
(docs/kineto-protocol.md#a-start-at-one-step). `w` is the number of warm-up iterations: Kineto begins with them w * p
steps before F - 2, and a config that arrives later than that shifts the window without a word, so it may be delivered
until step F - 2 - w * p ends. The tenth covers steps that get faster; where the machine is shared, steps and polls
are as irregular as its load, so both allowances grow with what was seen of them. Step mode needs the agent in every
rank, and steps that move. Times are those of the ranks' hosts; their clocks are taken to agree with the hub's within
the margin (NTP).

A client that could not reach its sidecar (which was killed, or stopped for a while) backs off for up to 5 s more. Until
it polls regularly again, `find_unsteady` asks for patience, and a plan that is made all the same leaves it 10 s. So
does a `patient` plan: polls that came too late once have shown that they do not keep their rhythm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.profiler import KINETO, ProfilerFacts
from fleetprof_api.quantities import duration
from fleetprof_api.request import Window

SECOND_NS: Final = 10**9
UNKNOWN_INTERVAL_NS: Final = 10 * SECOND_NS  # Kineto's default of 5 s, and as much for a client that backs off
MISSED_POLLS: Final = 3
NEWS_NS: Final = 3 * SECOND_NS  # how old a heartbeat's news of a poll may be
SEND_NS: Final = SECOND_NS // 10  # hub to sidecar's table of orders
MARGIN_NS: Final = SECOND_NS
MOST_LATENESS_NS: Final = 5 * SECOND_NS
PACE_PERCENT: Final = 110
MOST_PACE_PERCENT: Final = 300
SPARE_NS: Final = SECOND_NS // 4
STILL_MOVING_NS: Final = 10 * SECOND_NS
DEFAULT_DURATION_NS: Final = 2 * SECOND_NS
SHORTEST_DURATION_NS: Final = SECOND_NS // 100
LONGEST_DURATION_NS: Final = 60 * SECOND_NS
MAX_STEPS_PER_ITERATION: Final = 64
MOST_LEAD_STEPS: Final = 100  # of what a sidecar says of its profiler
MOST_LEAD_NS: Final = 60 * SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The common begin of all ranks. `explanation` is for people.

    `start_unix_ns` is when it is expected to begin; in mode "time" it is the order itself (whole milliseconds).
    """

    mode: str  # "step" or "time"
    first_step: int | None
    start_unix_ns: int
    deliver_until_unix_ns: int
    duration_ns: int  # of the window in mode "time", else 0
    explanation: str


def make_plan(processes: Sequence[pb.Process], window: Window, now_unix_ns: int, *, patient: bool = False) -> Plan:
    """Decides mode and start for these ranks' processes (at least one); `patient`: whatever rhythm their polls have."""
    polled_ns = expect_any_poll(now_unix_ns) if patient else max(expect_poll(p, now_unix_ns) for p in processes)
    obstacle = find_obstacle(processes, window, now_unix_ns)
    return (
        _plan_time(processes, window, polled_ns, obstacle)
        if obstacle
        else _plan_step(processes, window, polled_ns, now_unix_ns)
    )


def expect_poll(process: pb.Process, now_unix_ns: int) -> int:
    """The time at which the process has certainly asked for a config that is sent now (Unix nanoseconds)."""
    if not _is_steady(process, now_unix_ns):
        return expect_any_poll(now_unix_ns)
    sent = now_unix_ns + SEND_NS
    interval = process.poll_interval_ns
    since = sent - process.last_poll_unix_ns
    # A last poll in the future (clocks) gives no phase: then a whole interval may pass.
    next_poll = process.last_poll_unix_ns + math.ceil(since / interval) * interval if since >= 0 else sent + interval
    return next_poll + MARGIN_NS + interval // 10 + min(process.poll_lateness_ns, MOST_LATENESS_NS)


def expect_any_poll(now_unix_ns: int) -> int:
    """The same of a process whose polls have no rhythm that is known (Unix nanoseconds)."""
    return now_unix_ns + SEND_NS + UNKNOWN_INTERVAL_NS + MARGIN_NS


def find_unsteady(processes: Sequence[pb.Process], now_unix_ns: int) -> str:
    """The ranks whose next poll nobody can foretell yet; empty when all poll regularly."""
    unsteady = sum(not _is_steady(p, now_unix_ns) for p in processes)
    return f"{unsteady} of {len(processes)} ranks do not ask for orders regularly yet" if unsteady else ""


def _is_steady(process: pb.Process, now_unix_ns: int) -> bool:
    interval = process.poll_interval_ns
    return interval > 0 and now_unix_ns - process.last_poll_unix_ns <= MISSED_POLLS * interval + NEWS_NS


def find_obstacle(processes: Sequence[pb.Process], window: Window, now_unix_ns: int) -> str:
    """The reason why the ranks cannot begin at one common step; empty when they can."""
    if window.iterations is None:
        return "the window is a length of time"
    count = len(processes)
    without = sum(not p.has_agent for p in processes)
    if without:
        return f"{without} of {count} ranks have no agent"
    stepless = sum(p.step.step < 1 or p.step.iteration_ns <= 0 for p in processes)
    if stepless:
        return f"{stepless} of {count} ranks have not made enough optimizer steps yet"
    still = sum(now_unix_ns - p.step.at_unix_ns > max(STILL_MOVING_NS, 5 * p.step.iteration_ns) for p in processes)
    if still:
        return f"{still} of {count} ranks have made no optimizer step for a while"
    if _common_period(processes) > MAX_STEPS_PER_ITERATION:
        return "the ranks make different numbers of optimizer steps per iteration"
    return ""


def _common_period(processes: Sequence[pb.Process]) -> int:
    return math.lcm(*(max(1, p.step.steps_per_iteration) for p in processes))


def find_profiler(processes: Sequence[pb.Process]) -> ProfilerFacts:
    """The facts of the slowest of the ranks' profilers."""
    found = [_read_profiler(p.profiler) if p.HasField("profiler") else KINETO for p in processes]
    return ProfilerFacts(
        name=found[0].name,
        steps_before_first=max(f.steps_before_first for f in found),
        warmup_ns=max(f.warmup_ns for f in found),
        delivery_margin_ns=max(f.delivery_margin_ns for f in found),
    )


def _read_profiler(message: pb.Profiler) -> ProfilerFacts:
    """A sidecar's word, within what is reasonable."""
    return ProfilerFacts(
        name=message.name,
        steps_before_first=min(max(0, message.steps_before_first), MOST_LEAD_STEPS),
        warmup_ns=min(max(0, message.warmup_ns), MOST_LEAD_NS),
        delivery_margin_ns=min(max(0, message.delivery_margin_ns), MOST_LEAD_NS),
    )


def _step_ns(process: pb.Process) -> float:
    return process.step.iteration_ns / max(1, process.step.steps_per_iteration)


def _pace_percent(process: pb.Process) -> float:
    """The percent by which the next steps may come faster than the median."""
    usual, fastest = process.step.iteration_ns, process.step.fastest_iteration_ns
    measured_percent = 100 * usual / fastest if fastest > 0 else 0
    return min(max(PACE_PERCENT, measured_percent), MOST_PACE_PERCENT)


def _plan_step(processes: Sequence[pb.Process], window: Window, polled_ns: int, now_unix_ns: int) -> Plan:
    reached = max(
        p.step.step + math.ceil(max(0, polled_ns - p.step.at_unix_ns) * _pace_percent(p) / 100 / _step_ns(p))
        for p in processes
    )
    period = _common_period(processes)
    warmup_steps = (window.warmup_iterations or 0) * period
    lead_steps = find_profiler(processes).steps_before_first
    first = reached + warmup_steps + lead_steps
    first += (1 - first) % period
    # A config must be there when its last step for that ends; the quickest rank says when that is.
    last = first - lead_steps - warmup_steps
    deliver_until = max(polled_ns, min(p.step.at_unix_ns + int((last - p.step.step) * _step_ns(p)) for p in processes))
    begins = deliver_until + int((warmup_steps + 1) * min(map(_step_ns, processes)))
    return Plan(
        mode="step",
        first_step=first,
        start_unix_ns=begins,
        deliver_until_unix_ns=deliver_until,
        duration_ns=0,
        explanation=f"all begin with step {first}, expected at {_moment(begins)}",
    )


def _plan_time(processes: Sequence[pb.Process], window: Window, polled_ns: int, obstacle: str) -> Plan:
    profiler = find_profiler(processes)
    warmup_ns = 0 if all(p.device_kind == "cpu" for p in processes) else profiler.warmup_ns
    start = polled_ns + warmup_ns + profiler.delivery_margin_ns + SPARE_NS
    start = -(-start // 10**6) * 10**6
    duration_ns, reason = _choose_duration(processes, window)
    return Plan(
        mode="time",
        first_step=None,
        start_unix_ns=start,
        deliver_until_unix_ns=start - warmup_ns - profiler.delivery_margin_ns,
        duration_ns=duration_ns,
        explanation=f"all begin at one time, not at one step, since {obstacle}; {reason}",
    )


def _choose_duration(processes: Sequence[pb.Process], window: Window) -> tuple[int, str]:
    iteration_ns = max(p.step.iteration_ns for p in processes)
    if window.duration_millis is not None and (window.iterations is None or iteration_ns <= 0):
        return window.duration_millis * 10**6, f"the window is {window.duration_millis} ms"
    assert window.iterations is not None
    if iteration_ns <= 0:
        return DEFAULT_DURATION_NS, f"the window is {duration(DEFAULT_DURATION_NS)}, as the iteration time is unknown"
    # One more than asked: the start falls into the middle of an iteration.
    wanted = (window.iterations + 1) * iteration_ns
    duration_ns = min(max(-(-wanted // 10**6) * 10**6, SHORTEST_DURATION_NS), LONGEST_DURATION_NS)
    note = "" if duration_ns >= wanted else ", the longest that is allowed"
    return (
        duration_ns,
        f"the window is {duration(duration_ns)} for {window.iterations} iterations of {duration(iteration_ns)}{note}",
    )


def _moment(unix_ns: int) -> str:
    """A time that is still true when the request has ended: `07:06:40.250 UTC`."""
    return datetime.fromtimestamp(unix_ns // 10**6 / 1000, UTC).strftime("%H:%M:%S.%f")[:-3] + " UTC"
