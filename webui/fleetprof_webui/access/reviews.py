"""The rights of a person to read, asked of the API server (SubjectAccessReview): what kubectl would let them read.

Of another cluster's namespace (`CLUSTER.NAMESPACE`) this cluster's rights on ProfileRequests say nothing. It is read by
who may `get` or `list` `clusters.fleetprof.io` of the name CLUSTER, or CLUSTER.NAMESPACE, by a ClusterRole; there is
no such kind, and rights need none.

Guarantees: asked cluster-wide first, then once per namespace, at most eight at a time; a yes is remembered for 30 s, a
no for 5 s, by user and groups; when the API server does not answer, nobody may. Source: authorization.k8s.io/v1.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Final

from fleetprof_api import keys
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_webui.access.subject import Subject
from fleetprof_webui.kubernetes_api import AUTHENTICATED, REQUESTS_GROUP, REQUESTS_PLURAL, KubernetesApi
from fleetprof_webui.problems import RequestRefused

YES_S: Final = 30.0
NO_S: Final = 5.0
AT_ONCE: Final = 8
_MOST_REMEMBERED: Final = 50_000
_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_EVERYWHERE: Final = ""
_READING: Final = frozenset({"get", "list"})
CLUSTERS_PLURAL: Final = "clusters"

log = logging.getLogger(__name__)

_Question = tuple[Subject, str, str, str]


class Reviews:
    """Asks and remembers. Call it in one event loop."""

    def __init__(self, api: KubernetesApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: OrderedDict[_Question, tuple[bool, float]] = OrderedDict()

    async def find_permitted(self, subject: Subject, verb: str, among: Collection[str]) -> frozenset[str]:
        """The namespaces of these whose ProfileRequests the person may `verb`. Raises RequestRefused (503)."""
        room = asyncio.Semaphore(AT_ONCE)

        async def ask(namespace: str) -> bool:
            async with room:
                cluster = keys.split_qualified(namespace)[0]
                if not cluster:
                    return await self._may(subject, verb, namespace)
                if verb not in _READING:
                    return False
                return await self._may(subject, verb, _EVERYWHERE, cluster) or await self._may(
                    subject, verb, _EVERYWHERE, namespace
                )

        names = sorted(among)
        answers = await asyncio.gather(*(ask(name) for name in names))
        return frozenset(name for name, allowed in zip(names, answers, strict=True) if allowed)

    async def may_everywhere(self, subject: Subject, verb: str) -> bool:
        """Tells whether they may in all namespaces. Raises RequestRefused (503)."""
        return await self._may(subject, verb, _EVERYWHERE)

    async def _may(self, subject: Subject, verb: str, namespace: str, cluster: str = "") -> bool:
        question = (Subject(subject.name, tuple(sorted(subject.groups))), verb, namespace, cluster)
        known = self._known.get(question)
        if known is not None and self._clock() < known[1]:
            return known[0]
        allowed = await self._review(*question)
        self._known[question] = allowed, self._clock() + (YES_S if allowed else NO_S)
        self._known.move_to_end(question)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return allowed

    async def _review(self, subject: Subject, verb: str, namespace: str, cluster: str) -> bool:
        attributes = {"group": REQUESTS_GROUP, "resource": REQUESTS_PLURAL, "verb": verb, "namespace": namespace}
        if cluster:
            attributes |= {"resource": CLUSTERS_PLURAL, "name": cluster}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": subject.name,
                "groups": [*subject.groups, AUTHENTICATED],
                "resourceAttributes": attributes,
            },
        }
        try:
            status = (await self._api.ask(_PATH, review)).get("status") or {}
        except (ApiRefused, ApiUnreachable) as error:
            log.warning("the API server does not review who may read what: %s", error)
            raise RequestRefused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the Kubernetes API server does not say what you may read",
                "try again; the service's log says why",
            ) from None
        return status.get("allowed") is True and status.get("denied") is not True
