"""A pod whose sidecar's image nobody can pull."""

from typing import Final

import yaml
from cluster.images.building import TRAINER

from scene.api import Api, Object, parse

NAME: Final = "held"
_NOWHERE: Final = "registry.invalid/sidecar:none"


def make_held_pod(api: Api, namespace: str) -> None:
    """Makes it as injection does, but for the image; its trainer ends at once."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "train", "image": TRAINER, "imagePullPolicy": "Never", "command": ["true"]}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"containers": [container | {"securityContext": security}], "restartPolicy": "Never"},
    }
    injected = parse(api.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", document=yaml.safe_dump(pod)))
    (sidecar,) = injected["spec"]["initContainers"]
    sidecar["image"] = _NOWHERE
    spec = {part: injected["spec"][part] for part in ("initContainers", "containers", "volumes", "restartPolicy")}
    for each in (*spec["initContainers"], *spec["containers"]):
        each["volumeMounts"] = [m for m in each["volumeMounts"] if not m["name"].startswith("kube-api-access")]
    spec["volumes"] = [volume for volume in spec["volumes"] if not volume["name"].startswith("kube-api-access")]
    api.create(pod | {"spec": spec, "metadata": pod["metadata"] | {"annotations": injected["metadata"]["annotations"]}})
