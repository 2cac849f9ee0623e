"""Who made a ProfileRequest, as far as somebody vouches for it: admission noted it, and admission was there.

The note is an annotation. A guard of ours (the policy that compares it with the caller, or the webhook that writes it)
keeps users from forging it, from soon after the guard's creation on. So a note counts when its request is younger than
the guard; everything else was made by somebody unknown. Right: `get` of that one guard.
Guarantees: never a name that a user could have chosen; a name is shortened, not interpreted.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.pods import REQUESTED_BY_ANNOTATION
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.request import Status
from fleetprof_api.request.fields import longest

from fleetprof_operator.kubernetes.cluster import Cluster, Json, wait_to_try_again
from fleetprof_operator.profilerequests.status import parse_time

log = logging.getLogger(__name__)

UNKNOWN: Final = "unknown"
SETTLED_S: Final = 60
"""Every API server heeds a new guard by then, and Kubernetes' times are whole seconds."""
_MOST: Final = longest(Status, "requester")
_TRIES: Final = 3


def name_requester(request: Mapping[str, Any], guard: Mapping[str, Any] | None, settled_s: int = SETTLED_S) -> str:
    """The requester of an object, UNKNOWN without a guard that was there before it; both as the API gives them."""
    metadata = request["metadata"]
    noted = (metadata.get("annotations") or {}).get(REQUESTED_BY_ANNOTATION)
    if not noted or guard is None:
        return UNKNOWN
    try:
        guarded_since = parse_time(guard["metadata"]["creationTimestamp"]) + settled_s * 10**9
        made = parse_time(metadata["creationTimestamp"])
    except (KeyError, ValueError):
        return UNKNOWN
    if made <= guarded_since:
        return UNKNOWN
    text = str(noted)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


class Requesters:
    """Names requesters. `guard` is the path of the guard in the API; "": there is none, nobody is known."""

    def __init__(self, cluster: Cluster, guard: str, settled_s: int = SETTLED_S) -> None:
        self._cluster = cluster
        self._guard = guard
        self._settled_s = settled_s

    async def find(self, request: Json) -> str:
        """The name that the guard, or an earlier status of ours, vouches for; UNKNOWN where neither does."""
        known = (request.get("status") or {}).get("requester")
        if known:
            return str(known)  # our own word, before a restart
        for tries in range(_TRIES if self._guard else 0):
            try:
                return name_requester(request, await self._cluster.get(self._guard), self._settled_s)
            except ApiRefused as refusal:
                log.warning("nobody vouches for requesters: %s", refusal)
                return UNKNOWN
            except ApiUnreachable as error:
                log.warning("the guard of requesters cannot be read: %s", error)
                await wait_to_try_again(tries)
        return UNKNOWN
