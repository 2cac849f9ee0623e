"""The Lease `fleetprof`: which release serves a namespace, or the cluster, and which of its processes does.

The chart makes it, so that Helm refuses a second release; the process that serves holds it and renews it, as every
leader of Kubernetes does. Source: coordination.k8s.io/v1, client-go's leader election.

Guarantees: pure, time is passed in. A claim names the version of the Lease that it was decided on, so of two claims at
a time the API server takes one. A Lease has expired when it was seen unchanged for DURATION_S: no two clocks are
compared.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleetprof_operator.kubernetes.cluster import Json

LEASE: Final = "fleetprof"
"""Its name, in every namespace."""
DURATION_S: Final = 15
"""So long after the last sign of its holder another may take it."""
RENEW_S: Final = 2.0
TRY_S: Final = 3.0
"""So long one renewal may take."""
LOST_S: Final = 10.0
"""A holder that has not renewed for so long serves no more. With one more try it is out before another may be in."""
OWNER_ANNOTATION: Final = "fleetprof.io/owner"
HUB_ANNOTATION: Final = "fleetprof.io/hub"
TROUBLE_ANNOTATION: Final = "fleetprof.io/trouble"
"""What its holder says is wrong with itself; `kubectl fleetprof doctor` reads it."""
_MOST_TROUBLE: Final = 500


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that serves, or would: its pod, its release (NAMESPACE/NAME), and where its hub listens (HOST:PORT)."""

    identity: str
    owner: str
    hub: str


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A Lease as it was seen last: what its holder wrote, and since when (ns of a monotonic clock) it stands there."""

    mark: tuple[str, str] = ("", "")
    since_ns: int = 0


def lease_path(namespace: str) -> str:
    """The API's path of the Lease by which releases find each other in this namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE}"


def read_holder(lease: Json) -> Holder | None:
    """The holder; None: nobody holds it."""
    identity = (lease.get("spec") or {}).get("holderIdentity")
    if not identity:
        return None
    annotations = lease["metadata"].get("annotations") or {}
    return Holder(str(identity), str(annotations.get(OWNER_ANNOTATION, "")), str(annotations.get(HUB_ANNOTATION, "")))


def look(lease: Json, before: ObservedLease, now_ns: int) -> ObservedLease:
    """The Lease as this look leaves it."""
    spec = lease.get("spec") or {}
    mark = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
    return before if mark == before.mark and before.since_ns else ObservedLease(mark, now_ns)


def is_free(lease: Json, me: Holder, observed: ObservedLease, now_ns: int) -> bool:
    """Tells whether `me` may write its name: nobody's is there, or its own, or one that has not been renewed."""
    holder = read_holder(lease)
    same = holder is not None and (holder.identity, holder.owner) == (me.identity, me.owner)
    return holder is None or same or now_ns - observed.since_ns >= DURATION_S * 10**9


def build_claim(lease: Json, me: Holder, now_unix_ns: int, trouble: str = "") -> Json:
    """The merge patch with which `me` takes the Lease or renews it; `trouble` is what is wrong with it."""
    spec, now = lease.get("spec") or {}, _format(now_unix_ns)
    wanted: Json = {"holderIdentity": me.identity, "leaseDurationSeconds": DURATION_S, "renewTime": now}
    if spec.get("holderIdentity") != me.identity:
        wanted |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
    annotations = {
        OWNER_ANNOTATION: me.owner,
        HUB_ANNOTATION: me.hub,
        TROUBLE_ANNOTATION: trouble[:_MOST_TROUBLE] or None,
    }
    return {"metadata": _at_version(lease) | {"annotations": annotations}, "spec": wanted}


def build_release(lease: Json) -> Json:
    """The merge patch with which its holder lets it go, so that the next need not wait."""
    return {"metadata": _at_version(lease), "spec": {"holderIdentity": None}}


def _at_version(lease: Json) -> Json:
    return {"resourceVersion": lease["metadata"]["resourceVersion"]}


def _format(unix_ns: int) -> str:
    """metav1.MicroTime."""
    return datetime.fromtimestamp(unix_ns / 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
