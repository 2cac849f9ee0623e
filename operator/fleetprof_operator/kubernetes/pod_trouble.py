"""The reason why a pod does not run, or its sidecar not answer, by the pod's status: one sentence for people.

Guarantees: pure; never raises on what the API gives; bounded length.
"""

from collections.abc import Iterator
from typing import Final

from fleetprof_operator.kubernetes.cluster import Json

_MOST: Final = 300
_ORDINARY: Final = ("PodInitializing", "ContainerCreating")


def explain(status: Json) -> str:
    """The first trouble that a pod's status shows; empty when it shows none."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _join("not scheduled", condition.get("reason"), condition.get("message"))
    for trouble in _container_troubles(status):
        return trouble
    return ""


def _container_troubles(status: Json) -> Iterator[str]:
    """The troubles of init containers, which native sidecars are, before the others."""
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state, last = container.get("state") or {}, (container.get("lastState") or {}).get("terminated") or {}
        waiting = state.get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in _ORDINARY:
            ended = f"it ended with code {last.get('exitCode')}" if last else ""
            yield _join(f"container {container.get('name')}", waiting["reason"], waiting.get("message") or ended)


def _join(*parts: str | None) -> str:
    text = ": ".join(" ".join(part.split()) for part in parts if part)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
