"""The container, volumes and annotations that a pod gets.

Guarantees: pure; right under the Pod Security Standard `restricted`; the sidecar's container holds no token of the
Kubernetes API, no probe that could hold the trainer back, and always requests and limits. No volume has a size limit:
the kubelet would evict the trainer (the sidecar counts for itself).
"""

from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api import pods

from fleetprof_operator.injection.pods.resources import read_amounts, sum_amounts
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings
from fleetprof_operator.injection.pods.trainer_container import runs_launcher

_STORAGE: Final = "ephemeral-storage"
_TOKEN_SECONDS: Final = 3600
_READABLE: Final = 0o644  # the kubelet writes these as root; trainer and sidecar have other uids
_DEFAULT_GRACE_S: Final = 30
# For the last words to the hub, and the container's own end, before the kubelet kills it.
_LAST_WORDS_S: Final = 5
_MOST_GRACE_S: Final = 120

# Where the operator put the trainer's image in place of one that did not start (`held_pods`), there is no sidecar: the
# shell sleeps until the pod ends.
_COMMAND: Final = (
    "command -v fleetprof-sidecar-supervisor >/dev/null && exec fleetprof-sidecar-supervisor; "
    "trap 'exit 0' TERM; while sleep 3600 & wait $!; do :; done"
)

Resources = Mapping[str, Mapping[str, str]]


def make_container(
    spec: Mapping[str, Any],
    trainer: Mapping[str, Any],
    workload: str,
    resources: Resources,
    settings: InjectionSettings,
) -> dict[str, Any]:
    """The sidecar of the container `trainer` in a pod with this spec. `workload`: APIVERSION/KIND/NAME or ""."""
    security: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if settings.run_as_user is not None:
        security |= {"runAsUser": settings.run_as_user, "runAsGroup": settings.run_as_user}
    container: dict[str, Any] = {
        "name": pods.SIDECAR_CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["/bin/sh", "-c", _COMMAND],
        "env": _make_environment(spec, workload, resources, settings, command_launches=runs_launcher(trainer)),
        "resources": {kind: dict(amounts) for kind, amounts in resources.items()},
        "securityContext": security,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": pods.SHARED_VOLUME, "mountPath": pods.SOCKET_DIRECTORY},
            {"name": pods.SPOOL_VOLUME, "mountPath": pods.SPOOL_DIRECTORY},
            {"name": pods.IDENTITY_VOLUME, "mountPath": pods.IDENTITY_DIRECTORY, "readOnly": True},
            {"name": pods.NO_ACCOUNT_VOLUME, "mountPath": pods.SERVICE_ACCOUNT_DIRECTORY, "readOnly": True},
        ],
    }
    if settings.native_sidecars:
        container["restartPolicy"] = "Always"
    return container


def _make_environment(
    spec: Mapping[str, Any],
    workload: str,
    resources: Resources,
    settings: InjectionSettings,
    *,
    command_launches: bool,
) -> list[dict[str, Any]]:
    grace_s = spec.get("terminationGracePeriodSeconds")
    grace_s = (_DEFAULT_GRACE_S if grace_s is None else int(grace_s)) - _LAST_WORDS_S
    values = {
        "FLEETPROF_DIRECTORY": pods.SOCKET_DIRECTORY,
        "FLEETPROF_SPOOL": pods.SPOOL_DIRECTORY,
        "FLEETPROF_HUB": settings.hub,
        "FLEETPROF_TOKEN_FILE": f"{pods.IDENTITY_DIRECTORY}/token",
        "FLEETPROF_CA_FILE": f"{pods.IDENTITY_DIRECTORY}/ca.crt",
        "FLEETPROF_LABELS_FILE": f"{pods.IDENTITY_DIRECTORY}/labels",
        "FLEETPROF_GRACE_SECONDS": str(min(max(grace_s, 0), _MOST_GRACE_S)),
        "FLEETPROF_ENDS_WITH_POD": "1",
    }
    if not resolves_cluster_names(spec):
        values |= _make_addresses(settings)
    if workload:
        values["FLEETPROF_WORKLOAD"] = workload
    if limit := _storage_limit(spec, resources):
        values["FLEETPROF_STORAGE_LIMIT_BYTES"] = str(limit)
    if command_launches:
        values["FLEETPROF_COMMAND_LAUNCHES"] = "1"
    fields = {
        "FLEETPROF_NAMESPACE": "metadata.namespace",
        "FLEETPROF_POD_NAME": "metadata.name",
        "FLEETPROF_POD_UID": "metadata.uid",
        "FLEETPROF_NODE_NAME": "spec.nodeName",
    }
    last: dict[str, str] = {}
    if settings.dcgm_url:
        fields["FLEETPROF_NODE_IP"] = "status.hostIP"
        last["FLEETPROF_DCGM_URL"] = settings.dcgm_url  # the kubelet puts in what stands before it
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        *({"name": name, "valueFrom": _field(path)} for name, path in fields.items()),
        *({"name": name, "value": value} for name, value in last.items()),
    ]


def _storage_limit(spec: Mapping[str, Any], resources: Resources) -> int:
    """Bytes of ephemeral storage above which the kubelet evicts the pod with the sidecar; 0: it does not."""
    others = {
        kind: [c for c in spec.get(kind) or () if c.get("name") != pods.SIDECAR_CONTAINER]
        for kind in ("initContainers", "containers")
    }
    limits = [sum_amounts(others, "limits"), read_amounts({"resources": resources}, "limits")]
    return int(sum(amounts[_STORAGE] for amounts in limits if _STORAGE in amounts))


def _make_addresses(settings: InjectionSettings) -> dict[str, str]:
    """The addresses of hub and store, for a pod that cannot resolve their names."""
    values: dict[str, str] = {}
    if settings.hub_ip:
        port = settings.hub.rpartition(":")[2]
        host = f"[{settings.hub_ip}]" if ":" in settings.hub_ip else settings.hub_ip
        values |= {"FLEETPROF_HUB": f"{host}:{port}", "FLEETPROF_HUB_NAME": settings.hub_name}
    if settings.store_ip:
        values["FLEETPROF_STORE_ADDRESS"] = f"{settings.store_host}={settings.store_ip}"
    return values


def resolves_cluster_names(spec: Mapping[str, Any]) -> bool:
    """Tells whether a pod with this spec asks the cluster's DNS."""
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "ClusterFirst":
        return not spec.get("hostNetwork")  # on the host's network this policy means the host's own
    return bool(policy == "ClusterFirstWithHostNet")


def make_volumes() -> list[dict[str, Any]]:
    """All volumes, in the order in which they are added."""
    identity = [
        {
            "serviceAccountToken": {
                "audience": pods.AUDIENCE,
                "expirationSeconds": _TOKEN_SECONDS,
                "path": "token",
            }
        },
        {"downwardAPI": {"items": [_item("ca.crt", pods.HUB_CA_ANNOTATION)]}},
        {"downwardAPI": {"items": [{"path": "labels", **_field("metadata.labels")}]}},
    ]
    return [
        {"name": pods.SHARED_VOLUME, "emptyDir": {}},
        {"name": pods.SPOOL_VOLUME, "emptyDir": {}},
        {"name": pods.IDENTITY_VOLUME, "projected": {"sources": identity, "defaultMode": _READABLE}},
        {"name": pods.NO_ACCOUNT_VOLUME, "emptyDir": {}},
    ]


def make_trainer_mount() -> dict[str, Any]:
    """The mount of the trainer's container: sockets, traces, Kineto's base configuration, the agent."""
    return {"name": pods.SHARED_VOLUME, "mountPath": pods.SOCKET_DIRECTORY}


def make_annotations(settings: InjectionSettings) -> dict[str, str]:
    """The mark that the pod is done, and whom its sidecar trusts: the only text of ours that a pod carries."""
    return {pods.INJECTED_ANNOTATION: settings.version, pods.HUB_CA_ANNOTATION: settings.ca}


def _field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": path}}


def _item(path: str, annotation: str) -> dict[str, Any]:
    return {"path": path, **_field(f"metadata.annotations['{annotation}']")}
