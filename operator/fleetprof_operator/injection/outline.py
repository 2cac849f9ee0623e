"""The size of a pod, counted in its text before it is parsed: the webhook leaves pods alone that are too large.

The API server takes pods of several megabytes, with thousands of containers; a training pod has a handful.
Guarantees: pure; "" or a sentence that names what is too many. Nothing within the limits takes longer than some tens of
milliseconds to change.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

MAX_CONTAINERS: Final = 64
MAX_VARIABLES: Final = 4096
MAX_MOUNTS: Final = 2048
MAX_VOLUMES: Final = 256
MAX_AMOUNTS: Final = 512

_Some = Sequence[msgspec.Raw] | None


class _Resources(msgspec.Struct):
    requests: dict[str, msgspec.Raw] | None = None
    limits: dict[str, msgspec.Raw] | None = None

    def count(self) -> int:
        return len(self.requests or ()) + len(self.limits or ())


class _Container(msgspec.Struct, rename="camel"):
    resources: _Resources | None = None
    env: _Some = None
    env_from: _Some = None
    volume_mounts: _Some = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: Sequence[_Container] | None = None
    init_containers: Sequence[_Container] | None = None
    volumes: _Some = None
    resources: _Resources | None = None
    overhead: dict[str, msgspec.Raw] | None = None


class _Pod(msgspec.Struct):
    spec: _Spec


def find_excess(pod_json: bytes) -> str:
    """The reason why a pod is too large to be changed; "" when it is not."""
    try:
        spec = msgspec.json.decode(pod_json, type=_Pod).spec
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return "it is no pod"
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    counts = (
        ("containers", len(containers), MAX_CONTAINERS),
        ("environment variables", sum(len(c.env or ()) + len(c.env_from or ()) for c in containers), MAX_VARIABLES),
        ("volume mounts", sum(len(c.volume_mounts or ()) for c in containers), MAX_MOUNTS),
        ("amounts of resources", _count_amounts(spec, containers), MAX_AMOUNTS),
        ("volumes", len(spec.volumes or ()), MAX_VOLUMES),
    )
    return next((f"it has {n} {what}, and at most {most} are looked at" for what, n, most in counts if n > most), "")


def _count_amounts(spec: _Spec, containers: Sequence[_Container]) -> int:
    holders = [spec.resources, *(container.resources for container in containers)]
    return len(spec.overhead or ()) + sum(holder.count() for holder in holders if holder is not None)
