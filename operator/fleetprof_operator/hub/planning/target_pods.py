"""The pods that a request means, told by the operator around the hub; without it (local mode) sidecars say it.

A sidecar's token proves its pod, so the pods' uids decide whom a request may reach, not what a sidecar says of itself.

Guarantees: pure; what is missing is said precisely: which pods are not running and why, which were started without a
sidecar, whose sidecar has not come.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

LOOKING: Final = "LookingForPods"
"""The reason of TargetsResolved in the first moments, before which nothing is known."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod that is not over. `trouble` says why it, or its sidecar, does not run, as far as that is known.

    `without_sidecar`: why it went on without the sidecar that it had got, and so is not injected.
    """

    uid: str
    name: str
    injected: bool
    pending: bool = False
    terminating: bool = False
    trouble: str = ""
    without_sidecar: str = ""
    created_unix_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPods:
    """The pods of a request by uid; or none, with `reason` and a sentence while they are not known.

    `doubt`: why there may be more, as whose some pods of the namespace are cannot be told.
    """

    pods: Mapping[str, Pod] = field(default_factory=dict)
    reason: str = ""
    message: str = ""
    doubt: str = ""


FindPods = Callable[[str], TargetPods]  # of a capture's uid, as of now


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """The obstacle to the capture of a request's pods: a reason and a sentence, both empty when there is none.

    `pending`: pods will come that do not run yet. `hopeless_since_unix_ns`: pods run since then, all without a sidecar.
    """

    reason: str = ""
    message: str = ""
    pending: bool = False
    hopeless_since_unix_ns: int = 0


def find_missing(target: TargetPods, connected: Collection[str], what: str) -> Missing:
    """The missing part, where sidecars of the pods with the uids `connected` are there; `what` names the target."""
    if target.reason:
        return Missing(reason=target.reason, message=target.message, pending=True)
    pods = sorted((p for p in target.pods.values() if not p.terminating), key=lambda p: p.name)
    if not pods:
        ending = f"; pods that are ending: {len(target.pods)}" if target.pods else ""
        doubt = f"; whose some pods of the namespace are cannot be told: {target.doubt}" if target.doubt else ""
        return Missing(
            reason="NothingMatched",
            message=f"there is no pod of {what} yet that is pending or running{ending}{doubt}",
            pending=True,
        )
    pending = [p for p in pods if p.pending]
    running = [p for p in pods if not p.pending and p.uid not in connected]
    bare, silent = [p for p in running if not p.injected], [p for p in running if p.injected]
    sentences = []
    if pending:
        trouble = next((f": {p.name}: {p.trouble}" for p in pending if p.trouble), "")
        sentences.append(f"{len(pending)} of {_count(len(pods), 'pod')} {_are(pending)} pending{trouble}")
    if left := [p for p in bare if p.without_sidecar]:
        sentences.append(f"{_name(left)} went on without a sidecar: {left[0].name}: {left[0].without_sidecar}")
    if never := [p for p in bare if not p.without_sidecar]:
        sentences.append(
            f"{_name(never)} {_were(never)} not injected: only pods that are made after the label "
            "fleetprof.io/inject=true was set have a sidecar; start the job again"
        )
    if silent:
        trouble = next((f"{p.name}: {p.trouble}" for p in silent if p.trouble), "")
        hint = trouble or "is its container running, and can it reach the hub?"
        sentences.append(f"the sidecar of {_name(silent)} has not connected: {hint}")
    reason = "PodsPending" if pending else "SidecarsMissing" if silent else "NotInjected" if bare else ""
    hopeless = max(p.created_unix_ns for p in bare) if len(bare) == len(pods) else 0
    return Missing(reason=reason, message="; ".join(sentences), pending=bool(pending), hopeless_since_unix_ns=hopeless)


def _name(pods: Sequence[Pod]) -> str:
    names = ", ".join(p.name for p in pods[:_SHOWN])
    more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
    return f"{'pod' if len(pods) == 1 else 'pods'} {names}{more}"


def _are(pods: Sequence[Pod]) -> str:
    return "is" if len(pods) == 1 else "are"


def _were(pods: Sequence[Pod]) -> str:
    return "was" if len(pods) == 1 else "were"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
