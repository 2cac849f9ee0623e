"""The canary: one rank records one iteration before the others are asked. What is decided about it, and by what.

Guarantees: pure; what the job does by itself (an iteration as long as others before it) is not taken for harm; no
verdict on what nobody measured.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry, RankState, Reason, RecordingEstimate
from fleetprof_api.request import CanaryMode, Spec, Window

from fleetprof_operator.hub.planning.plan import find_obstacle
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.storage.workload_costs import WorkloadRecord, find_cost

ONE: Final = Window(iterations=1)
MOST_TRIES: Final = 2
_ID: Final = re.compile(r"(.+)-canary[0-9]+")
_HARM: Final = (Reason.SLOWDOWN, Reason.PROCESS_KILLED, Reason.NO_MEMORY)
_REPEATED: Final = (
    Reason.EMPTY_TRACE,  # a young job may pause just then: it loads its data, or lets another optimizer step
    Reason.TOO_LATE,
    Reason.NOT_POLLING,
    Reason.SIDECAR_RESTARTED,
    Reason.BUSY,
    Reason.CANCELLED_BY_USER_PROFILER,
)


def canary_id(uid: str, number: int) -> str:
    """The capture id that sidecars know a request's canary by."""
    return f"{uid}-canary{number}"


def find_owner(capture_id: str) -> str:
    """The uid of the request whose canary has this id; empty when it is no canary's."""
    match = _ID.fullmatch(capture_id)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether there is a canary: its rank, or None and why not. `impossible`: one was asked for, and cannot be."""

    target: RankTarget | None = None
    message: str = ""
    impossible: bool = False
    estimate: RecordingEstimate | None = None


def decide(spec: Spec, targets: Sequence[RankTarget], record: WorkloadRecord, now_unix_ns: int) -> Decision:
    """Who records first. The lowest rank that has the agent and steps: it alone can be timed, and stopped."""
    chosen = next((t for t in targets if _is_fit(t.process, now_unix_ns)), None)
    known = find_cost(record, spec.collect, chosen.process, now_unix_ns) if chosen is not None else None
    estimate = known.estimate if known is not None else None
    if spec.canary is CanaryMode.NEVER:
        return Decision(message="no canary, as asked", estimate=estimate)
    if chosen is None:
        message = "no canary: no rank has the agent and steps, so nobody could tell what a recording does to it"
        return Decision(message=message, impossible=spec.canary is CanaryMode.ALWAYS)
    if spec.canary is CanaryMode.ALWAYS:
        return Decision(target=chosen, estimate=estimate)
    if len(targets) == 1 and spec.window.iterations == 1 and not spec.window.warmup_iterations:
        return Decision(message="no canary: the capture is as small as one", estimate=estimate)
    limit = spec.limits.max_slowdown_percent
    if known is not None and (not limit or known.slowdown_percent <= limit):
        message = f"no canary: capture {known.uid} tells what one costs (+{known.slowdown_percent} %)"
        return Decision(message=message, estimate=estimate)
    return Decision(target=chosen, estimate=estimate)


def find_harm(entry: LedgerEntry, limit_percent: int) -> str:
    """What its own recording did to the rank, as a sentence with figures; empty when it is unharmed so far."""
    if entry.state is RankState.FAILED:
        # An order that was never taken did nothing; a rank that hangs did so before, unless its trace was complete.
        harmed = entry.armed_unix_ns and entry.reason in _HARM
        stopped = entry.written_unix_ns and entry.reason is Reason.NOT_STEPPING
        return entry.message if harmed or stopped else ""
    cost = entry.time_cost
    if cost is None or not limit_percent or not cost.iteration_before_ns:
        return ""
    if cost.slowdown_percent <= limit_percent or cost.iteration_ns <= cost.longest_before_ns:
        return ""
    return (
        f"its iteration took {_millis(cost.iteration_ns)} where {_millis(cost.iteration_before_ns)} were usual and "
        f"{_millis(cost.longest_before_ns)} the longest before: {cost.slowdown_percent} % slower, "
        f"limits.maxSlowdownPercent allows {limit_percent}"
    )


def can_repeat(entry: LedgerEntry, tries: int) -> bool:
    """Whether it did not come to anything through nobody's fault, and may be tried once more."""
    if tries >= MOST_TRIES:
        return False
    if entry.state is RankState.FAILED:
        return entry.reason in _REPEATED
    return entry.time_cost is not None and not entry.time_cost.iteration_ns


def say_unharmed(entry: LedgerEntry) -> str:
    """What the canary found, for people."""
    cost, who = entry.time_cost, f"canary: rank {entry.rank}"
    if cost is None or not cost.iteration_ns:
        return f"{who} recorded one iteration and goes on; how long that took was not measured"
    slower = f"+{cost.slowdown_percent} %" if cost.slowdown_percent else "no longer"
    stall = f", then a stall of {_millis(cost.stall_ns)}" if cost.stall_ns >= 10**6 else ""
    return (
        f"{who}'s recorded iteration took {_millis(cost.iteration_ns)}, {_millis(cost.iteration_before_ns)} before "
        f"({slower}){stall}"
    )


def _is_fit(process: pb.Process, now_unix_ns: int) -> bool:
    return process.polls_kineto and process.has_agent and not find_obstacle([process], ONE, now_unix_ns)


def _millis(value_ns: int) -> str:
    return f"{value_ns / 10**6:.3g} ms"
