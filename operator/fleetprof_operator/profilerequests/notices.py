"""Kubernetes Events about an object of ours: what people see in `kubectl describe`.

Guarantees: one Event per object and reason at most (and per `mark`, where there is one), through restarts too, because
its name is made of them; an Event that cannot be made is a line in the log and nothing else. Source: core/v1 Event.
Right: create events.
"""

import hashlib
import logging
import time
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.profilerequests.status import format_time

log = logging.getLogger(__name__)

COMPONENT: Final = "fleetprof-operator"
_MESSAGE: Final = 1000
_NAME: Final = 200


def build_notice(
    metadata: Json,
    kind: str,
    reason: str,
    message: str,
    now_unix_ns: int,
    *,
    about: str = "ProfileRequest",
    version: str = "fleetprof.io/v1alpha1",
    mark: str = "",
) -> Json:
    """The Event; `metadata` is the object's, `about` and `version` its kind, `kind` Normal or Warning."""
    mark = hashlib.sha256("/".join(filter(None, [metadata["uid"], reason, mark])).encode()).hexdigest()[:16]
    at = format_time(now_unix_ns)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][:_NAME]}.{mark}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": version,
            "kind": about,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "type": kind,
        "reason": reason,
        "message": message[:_MESSAGE] or reason,
        "source": {"component": COMPONENT},
        "reportingComponent": f"fleetprof.io/{COMPONENT}",
        "reportingInstance": COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


class Notices:
    """Makes the Events of one request. `metadata` is the request's."""

    def __init__(self, cluster: Cluster, metadata: Json) -> None:
        self._cluster = cluster
        self._metadata = metadata
        self._reasons: set[str] = set()

    async def tell(self, kind: str, reason: str, message: str) -> bool:
        """True when an Event was made; False when there was one, or it cannot be made."""
        if reason in self._reasons:
            return False
        self._reasons.add(reason)
        path = f"/api/v1/namespaces/{self._metadata['namespace']}/events"
        try:
            await self._cluster.create(path, build_notice(self._metadata, kind, reason, message, time.time_ns()))
        except (ApiRefused, ApiUnreachable) as error:
            if not (isinstance(error, ApiRefused) and error.status == 409):
                log.warning("no Event %s: %s", reason, error)
            return False
        return True
