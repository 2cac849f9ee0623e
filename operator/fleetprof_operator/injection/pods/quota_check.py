"""Tells if a pod with the sidecar would still be admitted: quotas and limit ranges of its namespace, and its own sums.

If a check that comes after us would refuse the training pod because of the sidecar, the pod is left alone.
Guarantees: pure; "" or a sentence that names the object, the resource and the amounts. Sources: Kubernetes 1.36,
pkg/quota/v1/evaluator/core/pods.go and plugin/pkg/admission/limitranger.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from fleetprof_operator.injection.pods.quantity import read_quantity
from fleetprof_operator.injection.pods.resources import (
    Amounts,
    Kind,
    all_containers,
    find_class,
    read_amounts,
    sum_amounts,
)

Document = Mapping[str, Any]
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class NamespaceLimits:
    """The ResourceQuotas and LimitRanges of a namespace, as the API gives them."""

    quotas: Sequence[Document] = ()
    limit_ranges: Sequence[Document] = ()

    @property
    def counts_storage(self) -> bool:
        """Tells whether a quota wants every container to state its ephemeral storage."""
        hard = [name for quota in self.quotas for name in ((quota.get("spec") or {}).get("hard") or ())]
        return any(name.endswith("ephemeral-storage") for name in hard)


def find_obstacle(spec: Document, sidecar: Document, limits: NamespaceLimits) -> str:
    """The reason why the pod (with the sidecar in it) would be refused; "" when it fits."""
    for obstacle in (
        *_exceed_pod_level(spec, sidecar),
        *(problem for quota in limits.quotas for problem in _exceed_quota(spec, quota)),
        *(problem for limit_range in limits.limit_ranges for problem in _exceed_range(spec, sidecar, limit_range)),
    ):
        return obstacle
    return ""


def _exceed_pod_level(spec: Document, sidecar: Document) -> Iterator[str]:
    """Containers may not ask for more than the pod as a whole states (pod-level resources, Kubernetes 1.34)."""
    own = (spec.get("resources") or {}) if spec.get("resources") else None
    if own is None:
        return
    apart = {name: value for name, value in spec.items() if name != "resources"}
    container_requests = sum_amounts(apart, "requests")
    for resource, amount in read_amounts(spec, "requests").items():
        if container_requests.get(resource, Decimal(0)) > amount:
            yield f"the pod's own resources.requests.{resource} of {amount:f} leave no room for the sidecar"
    most = read_amounts(spec, "limits")
    for resource, amount in read_amounts(sidecar, "limits").items():
        if amount > most.get(resource, amount):
            yield f"the sidecar's limits.{resource} of {amount:f} are more than the pod's own {most[resource]:f}"


def _exceed_quota(spec: Document, quota: Document) -> Iterator[str]:
    if not _is_in_scope(spec, quota):
        return
    name = (quota.get("metadata") or {}).get("name")
    status = quota.get("status") or {}
    hard = status.get("hard") or (quota.get("spec") or {}).get("hard") or {}
    used = status.get("used") or {}
    for counted, kind, resource in _counted_by(hard):
        total = sum_amounts(spec, kind).get(resource, Decimal(0))
        left = read_quantity(hard[counted]) - read_quantity(used.get(counted, "0"))
        if total > left:
            yield (
                f"ResourceQuota {name} has {max(left, Decimal(0)):f} of {counted} left, the pod with the sidecar needs "
                f"{total:f}"
            )
        silent = [c.get("name") for c in all_containers(spec) if resource not in read_amounts(c, kind)]
        if silent and resource not in read_amounts(spec, kind):
            yield f"ResourceQuota {name} would count the pod, and container {silent[0]} states no {kind}.{resource}"


def _counted_by(hard: Document) -> Iterator[tuple[str, Kind, str]]:
    for counted in hard:
        prefix, dot, resource = counted.partition(".")
        if not dot and counted in _COMPUTE:
            yield counted, "requests", counted
        elif resource in _COMPUTE and prefix == "requests":
            yield counted, "requests", resource
        elif resource in _COMPUTE and prefix == "limits":
            yield counted, "limits", resource


def _is_in_scope(spec: Document, quota: Document) -> bool:
    wanted = quota.get("spec") or {}
    selector = (wanted.get("scopeSelector") or {}).get("matchExpressions") or ()
    expressions = [
        *({"scopeName": scope, "operator": "Exists"} for scope in wanted.get("scopes") or ()),
        *selector,
    ]
    return all(_matches_scope(spec, expression) for expression in expressions)


def _matches_scope(spec: Document, expression: Document) -> bool:
    is_best_effort = find_class(spec) == "BestEffort"
    match expression.get("scopeName"):
        case "BestEffort":
            return is_best_effort
        case "NotBestEffort":
            return not is_best_effort
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "PriorityClass":
            return _matches_values(spec.get("priorityClassName") or "", expression)
        case _:
            return True  # a scope that we do not know: as if it counted the pod


def _matches_values(value: str, expression: Document) -> bool:
    values = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "DoesNotExist":
            return not value
        case _:
            return bool(value)


def _exceed_range(spec: Document, sidecar: Document, limit_range: Document) -> Iterator[str]:
    name = (limit_range.get("metadata") or {}).get("name")
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            requests, limits, whose = read_amounts(sidecar, "requests"), read_amounts(sidecar, "limits"), "the sidecar"
        elif item.get("type") == "Pod":
            requests, limits, whose = (
                sum_amounts(spec, "requests"),
                sum_amounts(spec, "limits"),
                "the pod with the sidecar",
            )
        else:
            continue
        for problem in _exceed_item(requests, limits, item):
            yield f"LimitRange {name}: {whose} {problem}"


def _exceed_item(requests: Amounts, limits: Amounts, item: Document) -> Iterator[str]:
    for resource, least in _read_all(item, "min"):
        if resource in requests and requests[resource] < least:
            yield f"asks for {requests[resource]:f} of {resource}, at least {least:f} are wanted"
    for resource, most in _read_all(item, "max"):
        if resource in limits and limits[resource] > most:
            yield f"has a limit of {limits[resource]:f} of {resource}, at most {most:f} are allowed"
    for resource, ratio in _read_all(item, "maxLimitRequestRatio"):
        request = requests.get(resource, Decimal(0))
        if resource in limits and (request == 0 or limits[resource] / request > ratio):
            yield f"has limits.{resource} above {ratio:f} times its request"


def _read_all(item: Document, field: str) -> Iterator[tuple[str, Decimal]]:
    for resource, value in (item.get(field) or {}).items():
        yield resource, read_quantity(value)
