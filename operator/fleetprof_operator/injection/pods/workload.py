"""What job a pod belongs to, as far as the pod itself tells: its owner, or the labels of known kinds above that owner.

Guarantees: pure. For people: captures are matched to pods by uid, not by this. Sources: each kind's documented labels.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

# A label that names the object at the top, whatever owns the pod itself.
_KINDS_BY_LABEL: Final = (
    ("jobset.sigs.k8s.io/jobset-name", "jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("ray.io/cluster", "ray.io/v1", "RayCluster"),
)
_WORKLOAD: Final = re.compile(r"[a-z0-9.-]+(?:/v[0-9a-z]+)?/[A-Z][A-Za-z0-9]*/[a-z0-9.-]+")


def find_workload(pod: Mapping[str, Any]) -> str:
    """APIVERSION/KIND/NAME, "" when nobody owns the pod or its owner's name cannot be given to the sidecar."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    found = ""
    for label, api_version, kind in _KINDS_BY_LABEL:
        if labels.get(label):
            found = f"{api_version}/{kind}/{labels[label]}"
            break
    else:
        owners = metadata.get("ownerReferences") or ()
        owner = next((owner for owner in owners if owner.get("controller")), None)
        if owner is not None:
            found = _name_owner(owner, labels)
    return found if _WORKLOAD.fullmatch(found) else ""


def _name_owner(owner: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    kind, name = owner.get("kind"), str(owner.get("name"))
    template_hash = labels.get("pod-template-hash")
    if kind == "ReplicaSet" and template_hash and name.endswith(f"-{template_hash}"):
        kind, name = "Deployment", name.removesuffix(f"-{template_hash}")
    return f"{owner.get('apiVersion')}/{kind}/{name}"
