"""The change of one pod: everything that the sidecar needs, or the reason why the pod is left alone.

Guarantees: pure, the pod that is given is not touched; what the user wrote stays (PYTHONPATH alone is extended, and
volumes, mounts and containers get neighbours); a pod that is injected already gets no change; the class of service
stays what it is, but for BestEffort, which becomes Burstable; a pod that the namespace's limits would refuse with the
sidecar in it is left alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleetprof_api import pods
from fleetprof_api.errors import FleetprofError

from fleetprof_operator.injection.pods.json_patch import make_patch
from fleetprof_operator.injection.pods.nodes import Node, find_node_without
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits, find_obstacle
from fleetprof_operator.injection.pods.resources import all_containers, find_class, read_amounts
from fleetprof_operator.injection.pods.sidecar_container import (
    Resources,
    make_annotations,
    make_container,
    make_trainer_mount,
    make_volumes,
    resolves_cluster_names,
)
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings, SidecarResources, is_cluster_name
from fleetprof_operator.injection.pods.trainer_container import choose_trainer
from fleetprof_operator.injection.pods.trainer_environment import EnvironmentChange, plan_environment
from fleetprof_operator.injection.pods.workload import find_workload

_STORAGE: Final = "ephemeral-storage"
_LEAST_STORAGE: Final = "64Mi"
_MIRROR: Final = "kubernetes.io/config.mirror"
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`patch` makes `pod` of the pod that was given; [] when it is left alone: then `why_not` says why.

    `reason` is `why_not` in one CamelCase word, for metrics. Warnings are for whoever creates the pod.
    """

    pod: Mapping[str, Any]
    patch: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    reason: str = ""
    why_not: str = ""


class _LeftAlone(FleetprofError):
    """The pod stays as it is."""

    def __init__(self, reason: str, why_not: str, *, warn: bool = True) -> None:
        super().__init__(why_not)
        self.reason = reason
        self.warn = warn


def change_pod(
    pod: Mapping[str, Any],
    limits: NamespaceLimits,
    settings: InjectionSettings,
    *,
    workload: str = "",
    nodes: Iterable[Node] | None = None,
) -> Change:
    """The pod (or pod template) with the sidecar in it.

    `workload` is APIVERSION/KIND/NAME of what it belongs to, where that is better known than the pod knows it. `nodes`:
    the cluster's, where the sidecar's image must be on every one that the pod may go to.
    Raises ValueError, KeyError, TypeError or AttributeError for what is no pod.
    """
    try:
        changed, warnings = _inject(pod, limits, settings, workload or find_workload(pod), nodes)
    except _LeftAlone as left:
        why_not = str(left)
        warnings = [f"fleetprof: this pod cannot be captured: {why_not}"] if left.warn else []
        return Change(pod=pod, warnings=warnings, reason=left.reason, why_not=why_not)
    return Change(pod=changed, patch=make_patch(pod, changed), warnings=[f"fleetprof: {text}" for text in warnings])


def _inject(
    pod: Mapping[str, Any],
    limits: NamespaceLimits,
    settings: InjectionSettings,
    workload: str,
    nodes: Iterable[Node] | None,
) -> tuple[dict[str, Any], list[str]]:
    _check(pod, settings)
    choice = choose_trainer(pod)
    if choice.why_not:
        raise _LeftAlone("NoTrainer", choice.why_not)
    # Copied along the way to what changes; the rest is shared with the pod that was given.
    changed = dict(pod)
    spec = changed["spec"] = dict(pod["spec"])
    spec["containers"] = list(spec["containers"])
    trainer = spec["containers"][choice.index] = dict(spec["containers"][choice.index])
    environment = _plan_environment(pod, trainer)
    given = enumerate(trainer.get("env") or ())
    trainer["env"] = [*(environment.replaced.get(index, entry) for index, entry in given), *environment.added]
    trainer["volumeMounts"] = [*(trainer.get("volumeMounts") or ()), make_trainer_mount()]
    spec["volumes"] = [*(spec.get("volumes") or ()), *make_volumes()]
    metadata = changed["metadata"] = dict(changed.get("metadata") or {})
    metadata["annotations"] = {
        # A plain sidecar stands before the trainer: `kubectl logs` and `exec` go where they went without us.
        **({} if settings.native_sidecars else {_DEFAULT_CONTAINER: spec["containers"][0]["name"]}),
        **(metadata.get("annotations") or {}),
        **make_annotations(settings),
    }
    if nodes is not None and (missing := find_node_without(pod["spec"], nodes)):
        raise _LeftAlone("NoImage", missing)
    _add_sidecar(spec, trainer, workload, limits, settings)
    return changed, [text for text in (choice.warning, *environment.warnings, *_find_unreached(spec, settings)) if text]


def _check(pod: Mapping[str, Any], settings: InjectionSettings) -> None:
    """Raises _LeftAlone for pods that are not to be touched, or cannot be."""
    metadata, spec = pod.get("metadata") or {}, pod["spec"]
    annotations = metadata.get("annotations") or {}
    if (metadata.get("labels") or {}).get(pods.INJECT_LABEL) == "false":
        raise _LeftAlone("OptedOut", f"its label {pods.INJECT_LABEL} is false", warn=False)
    if pods.INJECTED_ANNOTATION in annotations:
        raise _LeftAlone("AlreadyInjected", "it has the sidecar already", warn=False)
    if _MIRROR in annotations:
        raise _LeftAlone("StaticPod", "a static pod has no service account", warn=False)
    if (spec.get("os") or {}).get("name") == "windows":
        raise _LeftAlone("NotLinux", "it runs on Windows")
    if not settings.native_sidecars and (spec.get("restartPolicy") or "Always") != "Always":
        raise _LeftAlone(
            "NoNativeSidecars",
            "before Kubernetes 1.29 a sidecar would keep a pod from completing; this one has "
            f"restartPolicy {spec.get('restartPolicy')}",
        )
    for what, taken in _find_clashes(spec):
        raise _LeftAlone("NameTaken", f"it has a {what} named {taken!r} of its own")


def _find_unreached(spec: Mapping[str, Any], settings: InjectionSettings) -> Iterator[str]:
    """The names that a pod that does not ask the cluster's DNS will not find."""
    if resolves_cluster_names(spec):
        return
    policy = "ClusterFirstWithHostNet" if spec.get("hostNetwork") else "ClusterFirst"
    for host, address, effect in (
        (settings.hub_name, settings.hub_ip, "it cannot be captured"),
        (settings.store_host, settings.store_ip, "its captures end with UploadFailed"),
    ):
        if is_cluster_name(host) and not address:
            yield f"this pod cannot resolve {host}, whose address is not known here: {effect}. Set dnsPolicy: {policy}"


def _find_clashes(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    ours = {volume["name"] for volume in make_volumes()}
    for volume in spec.get("volumes") or ():
        if volume.get("name") in ours:
            yield "volume", volume["name"]
    for container in all_containers(spec):
        if container.get("name") == pods.SIDECAR_CONTAINER:
            yield "container", pods.SIDECAR_CONTAINER


def _plan_environment(pod: Mapping[str, Any], trainer: Mapping[str, Any]) -> EnvironmentChange:
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    environment = plan_environment(trainer, with_agent=annotations.get(pods.AGENT_ANNOTATION) != "false")
    if environment.why_not:
        raise _LeftAlone("OwnKineto", environment.why_not)
    for mount in trainer.get("volumeMounts") or ():
        if str(mount.get("mountPath")).rstrip("/") == make_trainer_mount()["mountPath"]:
            raise _LeftAlone("PathTaken", f"container {trainer.get('name')!r} mounts {mount['mountPath']} itself")
    return environment


def _add_sidecar(
    spec: dict[str, Any],
    trainer: Mapping[str, Any],
    workload: str,
    limits: NamespaceLimits,
    settings: InjectionSettings,
) -> None:
    """Puts the sidecar where it starts first, with the first resources that fit. Raises _LeftAlone."""
    # The agent must be there before the trainer's interpreter is; the kubelet starts plain containers in their order.
    place = "initContainers" if settings.native_sidecars else "containers"
    others = list(spec.get(place) or ())
    obstacle = ""
    for resources in _possible_resources(spec, limits, settings.resources):
        sidecar = make_container(spec, trainer, workload, resources, settings)
        spec[place] = [sidecar, *others]
        problem = find_obstacle(spec, sidecar, limits)
        if not problem:
            return
        obstacle = obstacle or problem
    raise _LeftAlone("NoRoom", obstacle)


def _possible_resources(
    spec: Mapping[str, Any], limits: NamespaceLimits, resources: SidecarResources
) -> Iterator[Resources]:
    storage: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    if limits.counts_storage or any(_STORAGE in read_amounts(c, "limits") for c in all_containers(spec)):
        # The kubelet evicts a pod that passes the sum of its containers' limits: ours must bring its own part.
        storage = {"requests": {_STORAGE: _LEAST_STORAGE}, "limits": {_STORAGE: resources.storage}}
    equal = {kind: {**resources.guaranteed, **storage[kind]} for kind in storage}
    if find_class(spec) != "Guaranteed":
        yield {
            "requests": {**resources.requests, **storage["requests"]},
            "limits": {**resources.limits, **storage["limits"]},
        }
    yield equal
