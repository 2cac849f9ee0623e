"""The outcome of an analyzer Job, read from the Job and its pods: done, still going, or failed with one sentence.

Guarantees: pure. The sentence is the analyzer's own (its termination message) where it left one; memory that was too
small and pods that never ran are told as such.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.kubernetes.pod_trouble import explain

OUT_OF_MEMORY = "OOMKilled"
_OUT_OF_MEMORY_SAID = (
    "the analyzer ran out of memory; raise spec.analysis.resources.limits.memory, or the installation's "
    "(analyzer.resources, and analyzer.maxResources, which requests are cut to)"
)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The state of a Job; `reason` and `message` are those of its Failed condition, `succeeded` counts pods."""

    state: Literal["going", "done", "failed"]
    reason: str = ""
    message: str = ""
    succeeded: int = 0


def read_outcome(job: Json) -> JobOutcome:
    """From the Job's conditions."""
    status = job.get("status") or {}
    succeeded = int(status.get("succeeded") or 0)
    for condition in status.get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") == "Complete":
            return JobOutcome("done", succeeded=succeeded)
        if condition.get("status") == "True" and condition.get("type") == "Failed":
            reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
            return JobOutcome("failed", reason, message, succeeded)
    return JobOutcome("going", succeeded=succeeded)


def read_end(job: Json) -> str:
    """The end of the Job, RFC 3339; its making, where that is not known."""
    ends = [c.get("lastTransitionTime") for c in (job.get("status") or {}).get("conditions") or []]
    return max((str(end) for end in ends if end), default=str(job["metadata"].get("creationTimestamp") or ""))


def find_sentence(outcome: JobOutcome, pods: Sequence[Json], seen_before: str) -> str:
    """The reason why the Job failed; `seen_before` is a trouble that its pods had while it went on."""
    newest = sorted(pods, key=lambda p: p["metadata"].get("creationTimestamp", ""), reverse=True)
    ended = [t for pod in newest for t in _terminations(pod) if t.get("exitCode")]
    for termination in ended:
        if termination.get("reason") == OUT_OF_MEMORY:
            return _OUT_OF_MEMORY_SAID
    for termination in ended:
        if message := " ".join(str(termination.get("message") or "").split()):
            return message[:500]
    trouble = next((message for pod in newest if (message := explain(pod.get("status") or {}))), "") or seen_before
    problem = outcome.message or outcome.reason or "its Job failed"
    return f"{problem}; {trouble}" if trouble else problem


def _terminations(pod: Json) -> list[Json]:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return [t for s in statuses if (t := (s.get("state") or {}).get("terminated"))]
