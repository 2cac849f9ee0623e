"""A pod that waits for its sidecar to start, and the patch with which it goes on without.

A native sidecar must have started before the trainer may, so an image that nobody can pull would hold the trainer back
for good. The sidecar's container gets the trainer's image instead, which the node must have in any case: its command
sleeps where there is no sidecar to start.

Guarantees: pure; never raises on what the API gives; a pod of which anything has changed since is not patched.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleetprof_api.pods import INJECTED_ANNOTATION, SHARED_VOLUME, SIDECAR_CONTAINER, WITHOUT_SIDECAR_ANNOTATION

Json = dict[str, Any]
_READY: Final = "PodReadyToStartContainers"
_MOST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPod:
    """`since_unix_ns`: when its containers could have started. `place`: the sidecar's among its init containers."""

    metadata: Json
    since_unix_ns: int
    place: int
    image: str
    trainers_image: str
    trouble: str


def read_held(pod: Json) -> HeldPod | None:
    """The pod as its sidecar holds it back; None where that has started, or where other things are waited for."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    if INJECTED_ANNOTATION not in annotations or WITHOUT_SIDECAR_ANNOTATION in annotations:
        return None
    if status.get("phase") != "Pending" or "deletionTimestamp" in metadata:
        return None
    first = spec.get("initContainers") or []
    place = next((at for at, container in enumerate(first) if container.get("name") == SIDECAR_CONTAINER), None)
    trainer = next((c for c in spec.get("containers") or [] if _sees_sockets(c)), None)
    since = _read_moment(status)
    if place is None or trainer is None or not since or not trainer.get("image"):
        return None
    mine: Json = next((s for s in status.get("initContainerStatuses") or [] if s.get("name") == SIDECAR_CONTAINER), {})
    if mine.get("started") or first[place].get("image") == trainer["image"]:
        return None
    waiting = (mine.get("state") or {}).get("waiting") or {}
    return HeldPod(
        metadata={name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")},
        since_unix_ns=since,
        place=place,
        image=str(first[place].get("image")),
        trainers_image=str(trainer["image"]),
        trouble=": ".join(filter(None, (waiting.get("reason"), " ".join(str(waiting.get("message") or "").split())))),
    )


def explain(held: HeldPod, patience_s: int) -> str:
    """Explains why it goes on without its sidecar, in one sentence of bounded length."""
    text = f"its sidecar ({held.image}) did not start within {patience_s} s" + (held.trouble and f": {held.trouble}")
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def make_patch(held: HeldPod, why: str) -> list[Json]:
    """The change that lets it go on (RFC 6902)."""
    note = f"/metadata/annotations/{WITHOUT_SIDECAR_ANNOTATION.replace('/', '~1')}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": held.metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": held.metadata["resourceVersion"]},
        {"op": "replace", "path": f"/spec/initContainers/{held.place}/image", "value": held.trainers_image},
        {"op": "add", "path": note, "value": why},
    ]


def _sees_sockets(container: Json) -> bool:
    return any(mount.get("name") == SHARED_VOLUME for mount in container.get("volumeMounts") or ())


def _read_moment(status: Json) -> int:
    """Since when volumes and network are there, so that images alone are waited for; 0 where that cannot be told."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == _READY and condition.get("status") == "True":
            try:
                return int(datetime.fromisoformat(str(condition.get("lastTransitionTime"))).timestamp()) * 10**9
            except ValueError:
                return 0
    return 0
