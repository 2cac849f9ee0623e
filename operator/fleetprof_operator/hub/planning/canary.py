"""The canary: one rank records one iteration before the others are asked. What is decided about it, and by what.

A recorded iteration that is much longer than usual may have met a pause of the job's own: a checkpoint, a collection,
an evaluation. One iteration cannot tell, whatever came before it, so the rank records again: the recording's doing
repeats itself, the job's keeps its rhythm. It is harm once the job itself would hardly ever have made all the recorded
iterations that long.

Guarantees: pure; no verdict on what nobody measured.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canary, RankState, Reason, RecordingEstimate, TimeCost
from fleetprof_api.request import CanaryMode, Spec, Window

from fleetprof_operator.hub.planning.plan import Plan, find_obstacle
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.storage.workload_costs import WorkloadRecord, find_cost

ONE: Final = Window(iterations=1)
_MOST_MISSED: Final = 2
_MOST_SLOW: Final = 5
_APART: Final = 5  # iterations from one try to the next: two of these are touched by neither recording
_HARDLY_EVER: Final = 1e-5
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
    """The canary, where there is one: its rank, or None and why not. `impossible`: one was asked for, and cannot be."""

    target: RankTarget | None = None
    message: str = ""
    impossible: bool = False
    estimate: RecordingEstimate | None = None


def decide(spec: Spec, targets: Sequence[RankTarget], record: WorkloadRecord, now_unix_ns: int) -> Decision:
    """The rank that records first. The lowest rank that has the agent and steps: it alone can be timed, and stopped."""
    chosen = next((t for t in targets if _is_fit(t.process, now_unix_ns)), None)
    known = find_cost(record, spec.options, chosen.process, now_unix_ns) if chosen is not None else None
    estimate = known.estimate if known is not None else None
    if spec.canary is CanaryMode.NEVER:
        return Decision(message="no canary, as asked", estimate=estimate)
    if chosen is None:
        message = "no canary: no rank has the agent and steps, so nobody could tell what a recording does to it"
        return Decision(message=message, impossible=spec.canary is CanaryMode.ALWAYS)
    if spec.canary is CanaryMode.ALWAYS:
        return Decision(target=chosen, estimate=estimate)
    if len(targets) == 1 and spec.recorded.iterations == 1 and not spec.recorded.warmup_iterations:
        return Decision(message="no canary: the capture is as small as one", estimate=estimate)
    limit = spec.limits.max_slowdown_percent
    if known is not None and (not limit or known.slowdown_percent <= limit):
        message = f"no canary: capture {known.uid} tells what one costs (+{known.slowdown_percent} %)"
        return Decision(message=message, estimate=estimate)
    return Decision(target=chosen, estimate=estimate)


def find_harm(canary: Canary, limit_percent: int) -> str:
    """The harm that its own recording did to the rank, as a sentence with figures; empty when it is unharmed so far."""
    entry = canary.entry
    if entry is None:
        return ""
    if entry.state is RankState.FAILED:
        # An order that was never taken did nothing; a rank that hangs did so before, unless its trace was complete.
        harmed = entry.armed_unix_ns and entry.reason in _HARM
        stopped = entry.written_unix_ns and entry.reason is Reason.NOT_STEPPING
        return entry.message if harmed or stopped else ""
    slow = _list_slow(canary, limit_percent)
    is_new = len(slow) >= _MOST_SLOW and not any(cost.alike_before for cost in slow)
    if not slow or (_chance(slow) >= _HARDLY_EVER and not is_new):
        return ""
    *most, last = [_say_time(cost.iteration_ns) for cost in slow]
    usual, longest = _say_time(slow[-1].iteration_before_ns), _say_time(slow[-1].longest_before_ns)
    least = min(cost.slowdown_percent for cost in slow)
    return (
        f"its {len(slow)} recorded iterations took {', '.join(most)} and {last} where {usual} were usual and "
        f"{longest} the longest before{_say_rhythm(slow[-1])}: {least} % slower, "
        f"limits.maxSlowdownPercent allows {limit_percent}"
    )


def can_repeat(canary: Canary, limit_percent: int) -> bool:
    """Tells whether a recording more would tell what this one could not: it came to nothing, or was slow."""
    entry = canary.entry
    if entry is None:
        return False
    has_missed = canary.tries - len(canary.earlier) < _MOST_MISSED
    if entry.state is RankState.FAILED:
        return has_missed and entry.reason in _REPEATED
    if entry.time_cost is None:
        return False
    if not entry.time_cost.iteration_ns:
        return has_missed
    return 0 < len(_list_slow(canary, limit_percent)) < _MOST_SLOW and not find_harm(canary, limit_percent)


def set_apart(plan: Plan, canary: Canary, earlier_step: int, steps_per_iteration: int) -> Plan:
    """The plan with a later start, where it would tell no more than the try before, which began with `earlier_step`.

    Between the two lie iterations that the job makes by itself, so that a change of its pace shows; and the pause that
    the try before met is not met again.
    """
    cost = canary.entry.time_cost if canary.entry is not None else None
    if cost is None or plan.first_step is None or not earlier_step:
        return plan
    first = max(plan.first_step, earlier_step + _APART * steps_per_iteration)
    rhythm = cost.rhythm_iterations * steps_per_iteration
    meets = rhythm > 0 and (first - earlier_step) % rhythm == 0 and _was_due(cost)
    return replace(plan, first_step=first + (steps_per_iteration if meets else 0))


def say_unharmed(canary: Canary, limit_percent: int) -> str:
    """The canary's findings, for people."""
    entry = canary.entry
    assert entry is not None
    cost, who = entry.time_cost, f"canary: rank {entry.rank}"
    if cost is None or not cost.iteration_ns:
        return f"{who} recorded one iteration and goes on; how long that took was not measured"
    slower = f"+{cost.slowdown_percent} %" if cost.slowdown_percent else "no longer"
    stall = f", then a stall of {_say_time(cost.stall_ns)}" if cost.stall_ns >= 10**6 else ""
    took = f"{_say_time(cost.iteration_ns)}, {_say_time(cost.iteration_before_ns)} before ({slower})"
    text = f"{who}'s recorded iteration took {took}{stall}"
    paused = max([*canary.earlier, *_list_slow(canary, limit_percent)], key=lambda one: one.alike_before, default=None)
    if paused is None:
        return text
    again = "" if paused is cost else f"; {_say_time(paused.iteration_ns)} in a try before"
    longest = _say_time(paused.longest_before_ns)
    if not paused.alike_before:
        return f"{text}{again}, where {longest} was the longest until then, and not again"
    alike = f"{paused.alike_before} of {paused.compared_before} iterations before{_say_rhythm(paused)}"
    return f"{text}{again}, a pause of the job's own: {alike} took about as long, {longest} at most"


def _list_slow(canary: Canary, limit_percent: int) -> list[TimeCost]:
    """The costs of all tries, if the latest one was slow."""
    cost = canary.entry.time_cost if canary.entry is not None else None
    is_slow = cost is not None and limit_percent and cost.slowdown_percent > limit_percent
    return [*canary.earlier, cost] if cost is not None and is_slow else []


def _chance(slow: Sequence[TimeCost]) -> float:
    """The chance that the job makes iterations as long as these by itself, each at its point of the rhythm."""
    return math.prod((cost.alike_before + 1) / (cost.compared_before + 1) for cost in slow)


def _is_fit(process: pb.Process, now_unix_ns: int) -> bool:
    return process.polls_kineto and process.has_agent and not find_obstacle([process], ONE, now_unix_ns)


def _was_due(cost: TimeCost) -> bool:
    """Tells whether the recorded iteration came when the job's rhythm has a pause."""
    return 2 * cost.alike_before > cost.compared_before


def _say_rhythm(cost: TimeCost) -> str:
    if not cost.rhythm_iterations:
        return ""
    return f" {'in' if _was_due(cost) else 'outside of'} the job's rhythm of {cost.rhythm_iterations} iterations"


def _say_time(value_ns: int) -> str:
    """`26.1 ms`, `1.45 s`, `1500 s`: never with an exponent."""
    value, unit = (value_ns / 10**9, "s") if value_ns >= 999_500_000 else (value_ns / 10**6, "ms")
    return f"{value:.0f} {unit}" if value >= 99.95 else f"{float(f'{value:.3g}'):g} {unit}"
