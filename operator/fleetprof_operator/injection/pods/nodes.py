"""Tells whether the sidecar's image is on every node that a pod may go to.

A native sidecar whose image cannot be pulled holds the trainer back, and who is asked about a pod does not know yet
where the scheduler will put it. So the rule is about all nodes at once.

Guarantees: pure; a node counts as one that the pod may go to unless the pod's own selector, required node affinity,
tolerations or extended resources rule it out, as the scheduler's filters of these names do. What else keeps a pod off
a node (a volume's place, free resources, other pods) is not looked at, so that more nodes must have it than need to.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetprof_operator.injection.pods.resources import all_containers

_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
_HOST: Final = re.compile(r"[^/]*[.:][^/]*|localhost")
_NAMED: Final = 3

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """The facts of a node that decide; `extended`: resources other than Kubernetes' own, of which it has some."""

    name: str
    labels: Json
    taints: tuple[Json, ...]
    extended: frozenset[str]
    has_image: bool


def read_node(node: Json, image: str) -> Node:
    """Reads a node of the API server. Its images are those that its kubelet lists: by default the 50 largest."""
    status = node.get("status") or {}
    names = {name for listed in status.get("images") or () for name in listed.get("names") or ()}
    return Node(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels") or {},
        taints=tuple(t for t in (node.get("spec") or {}).get("taints") or () if t.get("effect") in _KEEPS_AWAY),
        extended=frozenset(n for n, amount in (status.get("allocatable") or {}).items() if "/" in n and amount != "0"),
        has_image=name_in_full(image) in names,
    )


def name_in_full(image: str) -> str:
    """An image's name as container runtimes list it: with registry and tag, and of tag and digest only the digest."""
    first, slash, rest = image.partition("/")
    if not slash or not _HOST.fullmatch(first):
        image = f"docker.io/{image}" if slash else f"docker.io/library/{image}"
    elif first == "docker.io" and "/" not in rest:
        image = f"docker.io/library/{rest}"
    name, at, digest = image.partition("@")
    repository, _, last = name.rpartition("/")
    bare, colon, _ = last.partition(":")
    if at:
        return f"{repository}/{bare}@{digest}"
    return name if colon else f"{name}:latest"


def find_node_without(spec: Json, nodes: Iterable[Node]) -> str:
    """The reason why the pod cannot be sure of the image wherever it goes; "" when it can."""
    extended = {
        name
        for container in all_containers(spec)
        for kind in ("requests", "limits")
        for name in (container.get("resources") or {}).get(kind) or ()
        if "/" in name
    }
    candidates = [node for node in nodes if _may_go_to(spec, extended, node)]
    if not candidates:
        return "there is no node yet that it may go to, so none is known to have the sidecar's image"
    without = sorted(node.name for node in candidates if not node.has_image)
    if not without:
        return ""
    more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
    return (
        f"the sidecar's image is not on the list of {', '.join(without[:_NAMED])}{more}, "
        f"of {len(candidates)} nodes that it may go to"
    )


def _may_go_to(spec: Json, extended: set[str], node: Node) -> bool:
    if spec.get("nodeName"):
        return bool(spec["nodeName"] == node.name)
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    if not extended <= node.extended:
        return False
    tolerations = spec.get("tolerations") or ()
    if not all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in node.taints):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return not required or any(_fits(term, node) for term in required.get("nodeSelectorTerms") or ())


def _tolerates(toleration: Json, taint: Json) -> bool:
    """k8s.io/component-helpers/scheduling/corev1: a toleration without key and effect is for all of them."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if (toleration.get("operator") or "Equal") == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return True  # Exists, or what is newer than we are: the node counts


def _fits(term: Json, node: Node) -> bool:
    """A term without any requirement fits no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(expressions or fields) and (
        all(_holds(each, node.labels) for each in expressions)
        and all(_holds(each, {"metadata.name": node.name}) for each in fields)
    )


def _holds(requirement: Json, labels: Json) -> bool:
    value: str | None = labels.get(requirement["key"])
    values: Sequence[str] = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compare(value, operator, values)
    return True  # newer than we are: the node counts


def _compare(value: str | None, operator: str, values: Sequence[str]) -> bool:
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound
