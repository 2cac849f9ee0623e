"""A trigger has fired for a job: a capture, or the reason why not.

Guarantees: pure, time is passed in. Whatever fires, and in whatever order: never more captures within 24 hours, at a
time or of one job than the budget says, nor more bytes than it says; triggers that fire for one job together make one
capture; a capture's name follows from what it is for, so that it cannot be made twice.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fleetprof_api.policy import Budget, Mode, PolicyCapture, PolicySpec, Suppression
from fleetprof_api.request import Recording
from fleetprof_api.request.fields import longest

from fleetprof_operator.policies.log import DAY_NS, to_time

_USEFUL_BYTES: Final = 32 << 20
"""A rank that may write less hardly records an iteration: then no capture is better than one that is given up."""
_NAME: Final = 35
_OCCASION: Final = longest(PolicyCapture, "occasion")
_CAUSE: Final = longest(PolicyCapture, "cause")


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A trigger that fired for a job. `began_unix_ns` is the job's begin, `ranks` how many it has."""

    trigger: str
    occasion: str
    cause: str
    workload: str
    ranks: int
    began_unix_ns: int
    is_exempt: bool = False
    reads_stacks: bool = False  # and records nothing


@dataclass(frozen=True, slots=True)
class NoCapture:
    """No capture: why, as a word and a sentence."""

    reason: Suppression
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOrder:
    """A capture is to be made. `max_trace_bytes` of each rank, where that is less than the template's."""

    capture: PolicyCapture
    max_trace_bytes: int | None


def decide(
    spec: PolicySpec,
    identity: tuple[str, str],
    own: Iterable[PolicyCapture],
    others: Iterable[PolicyCapture],
    firing: Firing,
    now: int,
) -> CaptureOrder | NoCapture:
    """The decision on a firing. `identity` is the policy's name and uid, `own` its captures, `others` those that other
    policies of the namespace made; `now` in Unix ns.
    """
    own, budget = list(own), spec.budget
    of_job = [c for c in own if c.workload == firing.workload]
    # What another policy would have done in a dry run keeps nobody from doing it.
    of_job += [c for c in others if c.workload == firing.workload and c.mode is Mode.CAPTURE]
    today = [c for c in own if now - c.fired_unix_ns <= DAY_NS]
    name = name_request(identity, firing)
    if refusal := _refuse_job(budget, own, of_job, firing, now) or _refuse_policy(budget, own, today):
        return refusal
    ranks = count_ranks(spec.template.spec, firing.ranks)
    limit_bytes = spec.template.spec.limits.max_trace_bytes
    left = budget.bytes_per_day - sum(c.trace_bytes for c in {c.request: c for c in today + _running(own)}.values())
    each = 0 if firing.reads_stacks else min(limit_bytes, left // ranks)
    if not firing.reads_stacks and each < min(limit_bytes, _USEFUL_BYTES):
        return NoCapture(
            Suppression.BYTES_PER_DAY,
            f"{max(0, left)} of {budget.bytes_per_day} bytes per day are left, too few for {ranks} ranks; "
            "raise spec.budget.bytesPerDay or choose fewer ranks",
        )
    # Names are not checked: one that the API server refuses costs the status of this policy alone.
    capture = PolicyCapture.model_construct(
        request=name,
        workload=firing.workload,
        trigger=firing.trigger,
        occasion=firing.occasion[:_OCCASION],
        cause=firing.cause[:_CAUSE],
        mode=spec.mode,
        fired_time=to_time(-(-now // 10**9) * 10**9),  # never earlier than it was
        trace_bytes=each * ranks,
    )
    return CaptureOrder(capture=capture, max_trace_bytes=each if 0 < each < limit_bytes else None)


def name_request(identity: tuple[str, str], firing: Firing) -> str:
    """The name of the request that a firing makes, the same whenever it is asked for."""
    name, uid = identity
    key = "\0".join([uid, firing.workload, firing.trigger, firing.occasion])
    return f"{name[:_NAME].rstrip('-.')}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def count_ranks(template: Recording, ranks: int) -> int:
    """The number of a job's ranks that a template captures, one at least."""
    chosen = template.ranks
    if chosen is None:
        return max(1, ranks)
    if chosen.list_ is not None:
        return len(chosen.list_)
    if chosen.sample is not None:
        return max(1, min(chosen.sample, ranks))
    return max(1, -(-ranks // (chosen.every or 1)))


def _refuse_job(
    budget: Budget, own: list[PolicyCapture], of_job: list[PolicyCapture], firing: Firing, now: int
) -> NoCapture | None:
    if firing.is_exempt:
        return NoCapture(Suppression.EXEMPT, 'a pod of the job has the annotation fleetprof.io/alerts: "off"')
    age_s = (now - firing.began_unix_ns) // 10**9
    if age_s < budget.minimum_age_seconds:
        return NoCapture(
            Suppression.TOO_YOUNG,
            f"the job has run for {max(0, age_s)} s of the {budget.minimum_age_seconds} s of "
            "spec.budget.minimumAgeSeconds",
        )
    answered = (firing.workload, firing.trigger, firing.occasion[:_OCCASION])
    for capture in own:
        if (capture.workload, capture.trigger, capture.occasion) == answered:
            return NoCapture(Suppression.ALREADY_ANSWERED, f"{capture.request} was made for this already")
    for capture in of_job:
        if not capture.is_over:
            return NoCapture(Suppression.ALREADY_CAPTURING, f"{capture.request} captures this job now")
    since_s = min(((now - c.fired_unix_ns) // 10**9 for c in of_job), default=budget.cooldown_seconds)
    if since_s < budget.cooldown_seconds:
        return NoCapture(
            Suppression.COOLDOWN,
            f"the job was captured {max(0, since_s)} s ago; spec.budget.cooldownSeconds is {budget.cooldown_seconds}",
        )
    return None


def _refuse_policy(budget: Budget, own: list[PolicyCapture], today: list[PolicyCapture]) -> NoCapture | None:
    if len(_running(own)) >= budget.concurrent:
        return NoCapture(
            Suppression.CONCURRENT,
            f"{len(_running(own))} captures of this policy run; spec.budget.concurrent is {budget.concurrent}",
        )
    if len(today) >= budget.per_day:
        return NoCapture(
            Suppression.PER_DAY,
            f"{len(today)} captures were made within 24 hours; spec.budget.perDay is {budget.per_day}",
        )
    return None


def _running(captures: list[PolicyCapture]) -> list[PolicyCapture]:
    return [capture for capture in captures if not capture.is_over]
