"""A request's way to its order, as pure steps: one look at its ranks says what is to be done next.

Guarantees: `decide` touches nothing, and takes the time from its look; a request whose ranks are not there ends at its
deadline, and orders then those that are there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from fleetprof_api.request import Conflict, Spec

from fleetprof_operator.hub.planning.first_steps import NO_STEP
from fleetprof_operator.hub.planning.places import NoPlace
from fleetprof_operator.hub.planning.plan import find_obstacle, find_unsteady
from fleetprof_operator.hub.planning.resolution import Resolution
from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from fleetprof_operator.hub.submission import ALREADY, QUEUED, TOO_MANY

NO_DEVICE: Final = "NoDevice"
_BUSY_WITH_JOB: Final = "are being profiled by their job"


class StepKind(Enum):
    """The next thing that a request does."""

    SEARCH = "wait for ranks"
    QUEUE = "wait for others' end"
    GATHER = "wait for what may still come"
    BEGIN = "order its ranks"
    END = "end"


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next thing to do, and what the status says of it. `position`: the place in a queue."""

    kind: StepKind
    reason: str
    message: str
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierLooks:
    """The facts of earlier looks: until when ranks are gathered, since when some are missing; 0: not."""

    gather_until_unix_ns: int = 0
    others_since_unix_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The ranks of a request as of now, who has them, and who comes first.

    `is_impatient`: what does not come by itself is not waited for any more; `canary`: the process of our own canary.
    """

    now_unix_ns: int
    deadline_unix_ns: int
    spec: Spec
    settings: HubSettings
    found: Resolution
    holder: str
    earlier: Sequence[str]
    is_impatient: bool
    canary: str


def note_missing(memory: EarlierLooks, found: Resolution, now_unix_ns: int) -> EarlierLooks:
    """Remembers since when ranks are missing."""
    since = (memory.others_since_unix_ns or now_unix_ns) if found.others else 0
    return replace(memory, others_since_unix_ns=since)


def is_grace_over(memory: EarlierLooks, spec: Spec, now_unix_ns: int) -> bool:
    """Tells whether the request goes on without the ranks that are missing."""
    since, grace_s = memory.others_since_unix_ns, spec.missing_ranks_grace_seconds
    return since > 0 and grace_s is not None and now_unix_ns >= since + grace_s * SECOND_NS


def decide(look: Look, memory: EarlierLooks) -> tuple[NextStep, EarlierLooks]:
    """The next step, and what is to be remembered."""
    if not look.found.targets:
        return _search(look), replace(memory, gather_until_unix_ns=0)
    if look.holder or look.earlier:
        return _queue_for_ranks(look), replace(memory, gather_until_unix_ns=0)
    if look.spec.activities and all(target.process.device_kind == "cpu" for target in look.found.targets):
        message = "spec.activities: Device records nothing of ranks on a CPU; leave spec.activities out"
        return NextStep(StepKind.END, NO_DEVICE, message), memory
    pending, gather_until = _find_pending(look), memory.gather_until_unix_ns
    profiled = sum(target.process.busy for target in look.found.targets)
    if profiled and look.now_unix_ns < look.deadline_unix_ns - look.settings.gap_ns:
        # Nobody else of ours holds them: an order would be given up after seconds, as the job's own wins.
        pending, gather_until = f"{profiled} of {len(look.found.targets)} ranks {_say_busy(look)}", 0
    gather_until = gather_until or look.now_unix_ns + look.settings.gather_ns
    is_ready = not pending or look.now_unix_ns >= min(gather_until, look.deadline_unix_ns)
    return NextStep(StepKind.BEGIN if is_ready else StepKind.GATHER, "Gathering", pending), replace(
        memory, gather_until_unix_ns=gather_until
    )


def queue_for_place(spec: Spec, no_place: NoPlace) -> NextStep:
    """The step of a request that is ready, where others have all places."""
    if spec.conflict is Conflict.FAIL:
        return NextStep(StepKind.END, TOO_MANY, no_place.message)
    message = f"place {no_place.position} in the queue: {no_place.message}"
    return NextStep(StepKind.QUEUE, QUEUED, message, no_place.position)


def find_pause_ns(step: NextStep, waited_ns: int, settings: HubSettings) -> int:
    """Until the next look: the longer a request has waited for its job, the rarer it looks."""
    if step.kind is StepKind.GATHER:
        return settings.look_again_ns
    return max(settings.look_again_ns, min(settings.look_rarely_ns, waited_ns // 32))


def is_hopeless(found: Resolution, spec: Spec, now_unix_ns: int, settings: HubSettings) -> bool:
    """Tells whether a target without ranks does not come by itself: no job is there, or another one.

    Where a request gives missing ranks a grace, it goes on after that with those that are there.
    """
    if found.others and spec.missing_ranks_grace_seconds is not None:
        return False
    comes = found.starts or found.reason == NO_STEP
    return not comes and now_unix_ns >= found.heard_since_unix_ns + settings.returning_ns


def _search(look: Look) -> NextStep:
    found, now = look.found, look.now_unix_ns
    deaf = found.deaf_since_unix_ns and now - found.deaf_since_unix_ns >= look.settings.deaf_patience_ns
    if deaf or (look.is_impatient and is_hopeless(found, look.spec, now, look.settings)):
        return NextStep(StepKind.END, found.reason, found.message)
    if now >= look.deadline_unix_ns:
        waited = f" (until the deadline of {look.spec.active_deadline_seconds} s)"
        return NextStep(StepKind.END, found.reason, found.message + waited)
    return NextStep(StepKind.SEARCH, found.reason, found.message)


def _queue_for_ranks(look: Look) -> NextStep:
    first = look.holder or f"{look.earlier[0]} waits for the same ranks, and comes first"
    if look.spec.conflict is Conflict.FAIL:
        return NextStep(StepKind.END, ALREADY, first)
    position = len(look.earlier) + bool(look.holder)
    return NextStep(StepKind.QUEUE, QUEUED, f"place {position} in the queue for these ranks: {first}", position)


def _say_busy(look: Look) -> str:
    """Says what ranks record that are busy. A sidecar's last word may be of the canary, which is over."""
    own = any(t.process.busy and t.process.process_id == look.canary for t in look.found.targets)
    return "still record, for the canary or for their job's own profiler" if own else _BUSY_WITH_JOB


def _find_pending(look: Look) -> str:
    """Says what a short wait may still improve; empty when nothing."""
    found, settings, now = look.found, look.settings, look.now_unix_ns
    if found.incomplete and not found.final:
        return found.incomplete
    # After a restart of its sidecar an agent is heard of before Kineto, whose client may still be backing off.
    agents = [t.process for t in found.targets if t.process.has_agent or t.process.agent_waits]
    silent = [p for p in agents if not p.polls_kineto]
    if returning := sum(now - p.first_seen_unix_ns < settings.returning_ns for p in silent):
        return f"{returning} of {len(found.targets)} ranks do not ask for orders yet"
    processes = [t.process for t in found.targets if t.process.polls_kineto]
    if unsteady := find_unsteady(processes, now):
        return unsteady
    if look.spec.recorded.iterations is None:
        return ""
    # An agent shows itself when PyTorch has been imported, Kineto in the middle of that.
    young = any(now - p.first_seen_unix_ns < settings.young_ns for p in processes)
    if not young and not any(p.has_agent for p in processes):
        return ""
    return find_obstacle(processes, look.spec.recorded, now)
