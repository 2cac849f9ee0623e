"""Namespaces of tests, with PyTorch at hand: `restricted` is enforced in all of them."""

from pathlib import Path

from scene.api import Api

INJECTED = {"fleetprof.io/inject": "true"}
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
TORCH_CLAIM = "torch"


def make_namespace(api: Api, name: str, torch_folder: Path | None = None, labels: dict[str, str] | None = None) -> None:
    """A namespace; with a folder of the nodes, its pods can mount PyTorch from the claim `torch`."""
    metadata = {"name": name, "labels": _RESTRICTED | (labels or {})}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    if torch_folder is not None:
        api.create(*_torch_volume(name, torch_folder))


def remove_namespace(api: Api, name: str) -> None:
    """Removes it with all that is in it, and its volume."""
    api.delete("Namespace", name)
    api.await_gone("Namespace", name)
    api.delete("PersistentVolume", f"torch-{name}")


def _torch_volume(namespace: str, folder: Path) -> list[dict[str, object]]:
    # `restricted` refuses hostPath in a pod; an administrator's volume is how large read-only files get into one.
    size = {"storage": "10Gi"}
    claim = {"namespace": namespace, "name": TORCH_CLAIM}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"torch-{namespace}"},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "capacity": size,
                "hostPath": {"path": str(folder)},
                "storageClassName": "",
                "claimRef": claim,
                "persistentVolumeReclaimPolicy": "Retain",
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": claim,
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": size},
                "storageClassName": "",
                "volumeName": f"torch-{namespace}",
            },
        },
    ]
