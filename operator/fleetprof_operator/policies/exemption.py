"""Jobs that want neither alerts nor captures by policy: a pod has the annotation `fleetprof.io/alerts: "off"`.

Guarantees: one pod of a job is asked, its metadata only, and not again for a while; a pod that cannot be read leaves
what was known. Right: get pods.
"""

import logging
from collections.abc import Iterable
from typing import Final

from fleetprof_api.pods import ALERTS_ANNOTATION, ALERTS_OFF
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.policies.triggers.figures import Job

log = logging.getLogger(__name__)

FRESH_NS: Final = 60 * 10**9
"""So old may be what a decision rests on."""
_KNOWN_NS: Final = 300 * 10**9
_AT_A_TIME: Final = 10


class Exemptions:
    """The exemption of each job that was asked about."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Job, tuple[bool, int]] = {}  # and when that was read

    def list_exempt(self) -> list[Job]:
        """The jobs known to be exempt."""
        return [job for job, (is_exempt, _) in self._known.items() if is_exempt]

    async def is_exempt(self, job: Job, pod: str, now_unix_ns: int) -> bool:
        """As of a minute ago at most, where the API server answers."""
        known, read_unix_ns = self._known.get(job, (False, 0))
        if now_unix_ns - read_unix_ns < FRESH_NS:
            return known
        return await self._read(job, pod, now_unix_ns)

    async def refresh(self, jobs: Iterable[tuple[Job, str]], now_unix_ns: int) -> None:
        """Reads some of those that were not read for long, each with one of its pods, and forgets all others."""
        pods = dict(jobs)
        for job in set(self._known) - set(pods):
            del self._known[job]
        stale = [job for job in pods if now_unix_ns - self._known.get(job, (False, 0))[1] >= _KNOWN_NS]
        for job in stale[:_AT_A_TIME]:
            await self._read(job, pods[job], now_unix_ns)

    async def _read(self, job: Job, pod: str, now_unix_ns: int) -> bool:
        known, _ = self._known.get(job, (False, 0))
        try:
            found = await self._cluster.get(f"/api/v1/namespaces/{job.namespace}/pods/{pod}", metadata_only=True)
        except (ApiRefused, ApiUnreachable) as error:
            log.debug("the annotations of pod %s/%s cannot be read: %s", job.namespace, pod, error)
        else:
            known = (found["metadata"].get("annotations") or {}).get(ALERTS_ANNOTATION) == ALERTS_OFF
        self._known[job] = (known, now_unix_ns)
        return known
