"""Deletes requests that ended `ttlSecondsAfterFinished` ago. Traces and report stay in the store.

What a tool keeps as Git has it is not deleted: the tool would make it again, and that would be another capture.
Guarantees: derived from the objects alone, so that a restart loses nothing; a request of the same name that took its
place is never meant (the uid is a precondition); the TTL may be changed at any time. Right: delete profilerequests.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.profilerequests.records import request_path
from fleetprof_operator.profilerequests.status import parse_time

log = logging.getLogger(__name__)

_RETRY_S: Final = 10.0
# By these Flux and Argo CD mark what they keep as Git has it.
_GIT_LABELS: Final = (
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/name",
    "argocd.argoproj.io/instance",
)
_GIT_ANNOTATIONS: Final = ("argocd.argoproj.io/tracking-id",)


def find_due(body: Json) -> int | None:
    """The time at which a request is to be deleted (Unix ns); None: never, or not yet known."""
    ttl = body["spec"].get("ttlSecondsAfterFinished")
    ended = (body.get("status") or {}).get("completionTime")
    if ttl is None or not ended or "deletionTimestamp" in body["metadata"] or _is_kept_by_git(body["metadata"]):
        return None
    try:
        return parse_time(ended) + int(ttl) * 10**9
    except ValueError:
        return None


def _is_kept_by_git(metadata: Json) -> bool:
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return any(name in labels for name in _GIT_LABELS) or any(name in annotations for name in _GIT_ANNOTATIONS)


@dataclass(frozen=True, slots=True)
class _Due:
    at_unix_ns: int
    namespace: str
    name: str


class Retention:
    """Tell it of every request that is seen (`note`) or gone (`forget`), and let `run` run."""

    def __init__(self, cluster: Cluster, clock: Callable[[], int] = time.time_ns) -> None:
        self._cluster = cluster
        self._clock = clock
        self._due: dict[str, _Due] = {}
        self._changed = asyncio.Event()

    def note(self, body: Json) -> None:
        """The newest body of a request."""
        metadata = body["metadata"]
        at = find_due(body)
        if at is None:
            self._due.pop(metadata["uid"], None)
        else:
            self._due[metadata["uid"]] = _Due(at, metadata["namespace"], metadata["name"])
            self._changed.set()

    def forget(self, uid: str) -> None:
        """The request is gone."""
        self._due.pop(uid, None)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            now = self._clock()
            for uid, due in list(self._due.items()):
                if due.at_unix_ns <= now:
                    await self._delete(uid, due)
            nearest = min((due.at_unix_ns for due in self._due.values()), default=None)
            try:
                # What could not be deleted is still due.
                pause = None if nearest is None else max(_RETRY_S if nearest <= now else 0.0, (nearest - now) / 1e9)
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _delete(self, uid: str, due: _Due) -> None:
        try:
            await self._cluster.delete(request_path(due.namespace, due.name), {"preconditions": {"uid": uid}})
            log.info("request %s/%s (%s) is deleted: its time to live is over", due.namespace, due.name, uid)
        except ApiRefused as refusal:
            if refusal.status not in (404, 409):
                log.warning("request %s/%s cannot be deleted yet: %s", due.namespace, due.name, refusal)
                return
        except ApiUnreachable as error:
            log.warning("request %s/%s cannot be deleted yet: %s", due.namespace, due.name, error)
            return
        self._due.pop(uid, None)
