"""The job of a pod, as far as the pod itself tells: its owner, or the labels of known kinds above that owner.

Guarantees: pure; a label counts only where the pod's owner is one that this kind makes for an object of that name, so
that a pod does not belong to a colleague's job by a label. For people: captures are matched to pods by uid, not by
this. Sources: each kind's documented labels and names of what it makes.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

# A label that names the object at the top, whatever owns the pod itself.
_KINDS_BY_LABEL: Final = (
    ("jobset.sigs.k8s.io/jobset-name", "jobset.x-k8s.io/v1alpha2", "JobSet", "Job"),
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "StatefulSet"),
    ("ray.io/cluster", "ray.io/v1", "RayCluster", "RayCluster"),
)
# The kind that owns their pods is the last; its name is theirs, or begins with it.
_WORKLOAD: Final = re.compile(r"[a-z0-9.-]+(?:/v[0-9a-z]+)?/[A-Z][A-Za-z0-9]*/[a-z0-9.-]+")


def find_workload(pod: Mapping[str, Any]) -> str:
    """APIVERSION/KIND/NAME, "" when nobody owns the pod or its owner's name cannot be given to the sidecar."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    owners = metadata.get("ownerReferences") or ()
    owner = next((owner for owner in owners if owner.get("controller")), None)
    if owner is None:
        return ""
    for label, api_version, kind, made in _KINDS_BY_LABEL:
        name = labels.get(label)
        if name and owner.get("kind") == made and f"{owner.get('name')}-".startswith(f"{name}-"):
            found = f"{api_version}/{kind}/{name}"
            break
    else:
        found = _name_owner(owner, labels)
    return found if _WORKLOAD.fullmatch(found) else ""


def _name_owner(owner: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    kind, name = owner.get("kind"), str(owner.get("name"))
    template_hash = labels.get("pod-template-hash")
    if kind == "ReplicaSet" and template_hash and name.endswith(f"-{template_hash}"):
        kind, name = "Deployment", name.removesuffix(f"-{template_hash}")
    return f"{owner.get('apiVersion')}/{kind}/{name}"
