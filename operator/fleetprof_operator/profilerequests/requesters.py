"""Names who made a request, and who wrote the policy that made it, where admission has noted it.

The note is an annotation. A guard of ours (the policy that compares it with the caller, or the webhook that writes it)
keeps users from forging it, from soon after the guard's creation on. So a note counts when its object is younger than
the guard; everything else was made by somebody unknown. A request that our own account made
is one of a policy, and names its author as well. Right: `get` of that one guard.
Guarantees: never a name that a user could have chosen; a name is shortened, not interpreted.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.pods import CHANGED_BY_ANNOTATION, POLICY_AUTHOR_ANNOTATION, REQUESTED_BY_ANNOTATION
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


def read_note(
    document: Mapping[str, Any],
    guard: Mapping[str, Any] | None,
    settled_s: int = SETTLED_S,
    *,
    annotation: str = REQUESTED_BY_ANNOTATION,
) -> str:
    """The person whom an object's note names, UNKNOWN without a guard that was there before; as the API gives both."""
    metadata = document["metadata"]
    noted = (metadata.get("annotations") or {}).get(annotation)
    if not noted or guard is None:
        return UNKNOWN
    try:
        guarded_since = parse_time(guard["metadata"]["creationTimestamp"]) + settled_s * 10**9
        made = parse_time(metadata["creationTimestamp"])
    except (KeyError, ValueError):
        return UNKNOWN
    return UNKNOWN if made <= guarded_since else _shorten(str(noted))


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


class Requesters:
    """Names requesters and authors. `guard` is the path of the guard in the API; "": there is none, nobody is known.
    `own` is our own account's name in the API; "": no request is taken for a policy's.
    """

    def __init__(self, cluster: Cluster, guard: str, own: str = "", settled_s: int = SETTLED_S) -> None:
        self._cluster = cluster
        self._guard = guard
        self._own = own
        self._settled_s = settled_s

    async def find(self, request: Json) -> str:
        """The name that the guard, or an earlier status of ours, vouches for; UNKNOWN where neither does.

        Of a request that we made for a policy: our own name and the author's.
        """
        known = (request.get("status") or {}).get("requester")
        if known:
            return str(known)  # our own word, before a restart
        name = await self._read(request, REQUESTED_BY_ANNOTATION)
        author = (request["metadata"].get("annotations") or {}).get(POLICY_AUTHOR_ANNOTATION)
        return _shorten(f"{name} for {author}") if author and name == self._own else name

    async def find_author(self, policy: Json) -> str:
        """The author of a policy's spec as it is; UNKNOWN where nobody vouches for it."""
        return await self._read(policy, CHANGED_BY_ANNOTATION)

    async def _read(self, document: Json, annotation: str) -> str:
        for tries in range(_TRIES if self._guard else 0):
            try:
                guard = await self._cluster.get(self._guard)
                return read_note(document, guard, self._settled_s, annotation=annotation)
            except ApiRefused as refusal:
                log.warning("nobody vouches for requesters: %s", refusal)
                return UNKNOWN
            except ApiUnreachable as error:
                log.warning("the guard of requesters cannot be read: %s", error)
                await wait_to_try_again(tries)
        return UNKNOWN
