"""The pods of one request, as they come and go: the operator's half of the hub's `TargetPods`.

All requests of a namespace share one watch of its pods (`NamespacePods`); a request costs no call and no connection,
but for owners that nobody has read yet.

Guarantees: `current` never blocks; pods are known only when the first listing is whole; a pod that was listed once and
is not any more has ended; what keeps us from telling whose a stranger's pod is, is said and hinders no target whose
pods are known. Right: get on the kinds of owners.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiUnreachable
from fleetprof_api.request import ProfileRequest, WorkloadReference

from fleetprof_operator.hub.planning.target_pods import LOOKING, Pod, TargetPods
from fleetprof_operator.kubernetes.namespace_pods import NamespacePods, SeenPod, SharedPods
from fleetprof_operator.kubernetes.owners import CannotFollow
from fleetprof_operator.kubernetes.workloads import PodQuery, find_query

_LOOK_AGAIN_S: Final = 5.0
_BURST_S: Final = 0.1  # pods come in bursts; whose they are is looked up once for each


class TargetPodsWatch:
    """The pods of a namespace's `pods` that a query means; `what` names its target for people. Let `run` run."""

    def __init__(self, pods: NamespacePods, query: PodQuery, what: str) -> None:
        self._pods = pods
        self._query = query
        self._what = what
        self._belongs: dict[str, bool] = {}  # by the pod's uid, where owners decide
        self._owner_trouble = ""
        self._followed = 0
        self._state: tuple[int, int, bool, str] | None = None
        self._known = TargetPods(reason=LOOKING, message=f"the pods of {self._what} are being looked for")

    def current(self) -> TargetPods:
        """The pods as last seen."""
        pods = self._pods
        state = pods.version(self._query), self._followed, pods.complete, pods.trouble
        if state != self._state:
            self._state, self._known = state, self._assemble()
        return self._known

    async def run(self) -> None:
        """Until cancelled; at once, where no owners are to be followed."""
        owner, version = self._query.owner, -1
        while owner is not None:
            try:
                async with asyncio.timeout(_LOOK_AGAIN_S if self._owner_trouble else None):
                    await self._pods.wait_for_news(version)
            except TimeoutError:
                pass
            await asyncio.sleep(_BURST_S)
            version = self._pods.version(self._query)
            await self._follow_owners(owner)
            self._followed += 1

    async def _follow_owners(self, owner: WorkloadReference) -> None:
        trouble = ""
        live = {pod.uid: pod for pod in self._pods.find(self._query)}
        for uid, pod in live.items():
            if uid not in self._belongs:
                try:
                    self._belongs[uid] = await self._pods.owners.lead_to(pod.owners, owner)
                except (CannotFollow, ApiUnreachable) as error:
                    trouble = str(error)
        for uid in self._belongs.keys() - live.keys():
            del self._belongs[uid]
        self._owner_trouble = trouble

    def _assemble(self) -> TargetPods:
        chosen = [p for p in self._pods.find(self._query) if self._query.owner is None or self._belongs.get(p.uid)]
        if self._pods.trouble and not chosen:
            message = f"the pods of {self._what} cannot be looked for: {self._pods.trouble}"
            return TargetPods(reason="CannotFindPods", message=message)
        if not self._pods.complete or (self._query.owner is not None and not self._followed):
            return self._known
        return TargetPods(pods={pod.uid: _tell(pod) for pod in chosen}, doubt=self._owner_trouble)


def _tell(pod: SeenPod) -> Pod:
    return Pod(
        uid=pod.uid,
        name=pod.name,
        injected=pod.injected and not pod.without_sidecar,
        without_sidecar=pod.without_sidecar,
        pending=pod.pending,
        terminating=pod.terminating,
        trouble=pod.trouble,
        created_unix_ns=pod.created_unix_ns,
    )


class TargetWatches:
    """The watch of each request under way, by its uid: where the hub asks for the pods of one."""

    def __init__(self, shared: SharedPods) -> None:
        self._shared = shared
        self._watches: dict[str, TargetPodsWatch] = {}

    @contextmanager
    def hold(self, uid: str, namespace: str, request: ProfileRequest) -> Iterator[TargetPodsWatch]:
        """Answers for this request within the block, in which the watch is to run."""
        query = find_query(request.spec.target)
        with self._shared.of(namespace) as pods, pods.use(query):
            self._watches[uid] = watch = TargetPodsWatch(pods, query, request.target_text())
            try:
                yield watch
            finally:
                del self._watches[uid]

    async def close(self) -> None:
        """Ends what is watched."""
        await self._shared.close()

    def find_pods(self, uid: str) -> TargetPods:
        """The pods of a request as last seen."""
        watch = self._watches.get(uid)
        if watch is None:
            return TargetPods(reason=LOOKING, message="the operator has not looked for the pods yet")
        return watch.current()
