"""The resources of a pod as scheduler, quota and kubelet count them: sums, and the class of service.

Guarantees: pure. A container that has a limit and no request has the limit as its request, as the API server fills in.
Sources: component-helpers resource/helpers.go (PodRequests, PodLimits), pkg/apis/core/v1/helper/qos (ComputePodQOS).
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal

from fleetprof_operator.injection.pods.quantity import read_quantity

Kind = Literal["requests", "limits"]
Amounts = dict[str, Decimal]
_COUNTED_FOR_CLASS: Final = ("cpu", "memory")


def all_containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Init containers (native sidecars among them), then containers."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def read_amounts(container: Mapping[str, Any], kind: Kind) -> Amounts:
    """A container's (or pod's) own requests or limits. Raises ValueError for what is no quantity."""
    resources = container.get("resources") or {}
    amounts = {name: read_quantity(value) for name, value in (resources.get(kind) or {}).items()}
    if kind == "requests":
        return read_amounts(container, "limits") | amounts
    return amounts


def sum_amounts(spec: Mapping[str, Any], kind: Kind) -> Amounts:
    """The whole pod's sum: the larger of its containers together and its start, native sidecars in both."""
    running = _add(read_amounts(container, kind) for container in spec.get("containers") or ())
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = read_amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            sidecars = _add([sidecars, own])
            own = sidecars
        else:
            own = _add([sidecars, own])
        starting = _greater(starting, own)
    total = _greater(_add([running, sidecars]), starting) | read_amounts(spec, kind)
    return _add([total, {name: read_quantity(value) for name, value in _overhead(spec, kind, total)}])


def find_class(spec: Mapping[str, Any]) -> str:
    """The pod's quality of service: Guaranteed, Burstable or BestEffort."""
    holders = [spec] if spec.get("resources") else all_containers(spec)
    requests, limits, all_limited = Amounts(), Amounts(), True
    for holder in holders:
        requests = _add([requests, _counted(read_amounts(holder, "requests"))])
        own = _counted(read_amounts(holder, "limits"))
        limits = _add([limits, own])
        all_limited = all_limited and len(own) == len(_COUNTED_FOR_CLASS)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _counted(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name in _COUNTED_FOR_CLASS and amount > 0}


def _overhead(spec: Mapping[str, Any], kind: Kind, total: Amounts) -> Iterator[tuple[str, Any]]:
    for name, value in (spec.get("overhead") or {}).items():
        if kind == "requests" or name in total:
            yield name, value


def _add(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _greater(a: Amounts, b: Amounts) -> Amounts:
    return {name: max(a.get(name, Decimal(0)), b.get(name, Decimal(0))) for name in a | b}
