"""The pods of one request, as they come and go: the operator's half of the hub's `TargetPods`.

Two listings of metadata: all pods of the target that are not over, and which of them are pending. The status of a pod
is read only for the few that keep the request waiting, to say why.

Guarantees: `current` never blocks; pods are known only when the first listing is whole; a pod that was listed once and
is not any more has ended. Rights that this uses: list and watch pods, get pods, and get on the kinds of owners.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fleetprof_api.pods import INJECTED_ANNOTATION
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.request import ProfileRequest

from fleetprof_operator.hub.planning.target_pods import Pod, TargetPods
from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.kubernetes.listing import Listing
from fleetprof_operator.kubernetes.owners import CannotFollow, Owners
from fleetprof_operator.kubernetes.pod_trouble import explain
from fleetprof_operator.kubernetes.workloads import PodQuery, find_query

LOOKING: Final = "LookingForPods"
"""The reason of TargetsResolved in the first moments, before which nothing is known."""
_NOT_OVER: Final = "status.phase!=Succeeded,status.phase!=Failed"
_EXPLAINED: Final = 3  # pods whose status is read
_LOOK_AGAIN_S: Final = 5.0
_BURST_S: Final = 0.05  # pods come in bursts; what is known of them is put together once for each


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What is kept of a pod's metadata."""

    uid: str
    name: str
    injected: bool
    terminating: bool
    created_unix_ns: int
    owners: Sequence[Json]


class TargetPodsWatch:
    """The pods of a request's target. Let `run` run; `connected` tells the uids of pods whose sidecar is there.

    Once `settled` is set, nobody waits for pods any more, and why they do not run is not looked for.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, request: ProfileRequest, connected: Callable[[], Collection[str]]
    ) -> None:
        self.settled = False
        self._cluster = cluster
        self._what = request.target_text()
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._query = find_query(request.spec.target)
        self._connected = connected
        self._owners = Owners(cluster, namespace)
        self._belongs: dict[str, bool] = {}  # where owners decide
        self._troubles: dict[str, str] = {}
        self._owner_trouble = ""
        self._changed = asyncio.Event()
        self._live = self._list("")
        self._pending = self._list("status.phase=Pending")
        self._known = TargetPods(reason=LOOKING, message=f"the pods of {self._what} are being looked for")

    def current(self) -> TargetPods:
        """The pods as last seen."""
        return self._known

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for work in (self._live.run(), self._pending.run(), self._keep_known(), self._keep_explaining()):
                group.create_task(work)

    def _list(self, phase: str) -> Listing[_Facts]:
        fields = ",".join(part for part in (self._query.field_selector, phase or _NOT_OVER) if part)
        query = {"labelSelector": self._query.label_selector, "fieldSelector": fields}
        return Listing(self._cluster, self._path, query, keep=_read_facts, on_change=self._note_change)

    def _note_change(self) -> None:
        self._changed.set()

    async def _keep_known(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_LOOK_AGAIN_S if self._owner_trouble else None):
                    await self._changed.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(_BURST_S)
            self._changed.clear()
            if self._query.owner is not None:
                await self._follow_owners(self._query)
            self._known = self._assemble()

    async def _follow_owners(self, query: PodQuery) -> None:
        assert query.owner is not None
        trouble = ""
        for uid, facts in list(self._live.objects.items()):
            if uid not in self._belongs:
                try:
                    self._belongs[uid] = await self._owners.lead_to(facts.owners, query.owner)
                except (CannotFollow, ApiUnreachable) as error:
                    trouble = str(error)
        for uid in set(self._belongs) - set(self._live.objects):
            del self._belongs[uid]
        self._owner_trouble = trouble

    def _assemble(self) -> TargetPods:
        chosen = {
            uid: f for uid, f in self._live.objects.items() if self._query.owner is None or self._belongs.get(uid)
        }
        trouble = self._live.trouble or ("" if chosen else self._owner_trouble)
        if trouble and not chosen:
            message = f"the pods of {self._what} cannot be looked for: {trouble}"
            return TargetPods(reason="CannotFindPods", message=message)
        if not self._live.complete or not self._pending.complete:
            return self._known
        return TargetPods(
            pods={
                uid: Pod(
                    uid=uid,
                    name=facts.name,
                    injected=facts.injected,
                    pending=uid in self._pending.objects,
                    terminating=facts.terminating,
                    trouble=self._troubles.get(uid, ""),
                    created_unix_ns=facts.created_unix_ns,
                )
                for uid, facts in chosen.items()
            }
        )

    async def _keep_explaining(self) -> None:
        """Why the first few pods without a sidecar's stream are so; each look is one GET per pod."""
        while not self.settled:
            there = self._connected()
            waited_for = (p for p in self._known.pods.values() if not p.terminating and (p.pending or p.injected))
            missing = sorted((p for p in waited_for if p.uid not in there), key=lambda p: p.name)
            found = {pod.uid: await self._explain(pod.name) for pod in missing[:_EXPLAINED]}
            if found != self._troubles:
                self._troubles = found
                self._note_change()
            await asyncio.sleep(_LOOK_AGAIN_S if missing else _LOOK_AGAIN_S / 5)

    async def _explain(self, name: str) -> str:
        try:
            pod = await self._cluster.get(f"{self._path}/{name}")
        except (ApiRefused, ApiUnreachable):
            return ""  # gone meanwhile, or told by the listing's own trouble
        return explain(pod.get("status") or {})


def _read_facts(metadata: Json) -> _Facts:
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return _Facts(
        uid=metadata["uid"],
        name=metadata["name"],
        injected=INJECTED_ANNOTATION in (metadata.get("annotations") or {}),
        terminating="deletionTimestamp" in metadata,
        created_unix_ns=int(created.timestamp()) * 10**9,
        owners=metadata.get("ownerReferences") or (),
    )


class TargetWatches:
    """The watch of each request under way, by its uid: where the hub asks for the pods of one."""

    def __init__(self) -> None:
        self._watches: dict[str, TargetPodsWatch] = {}

    @contextmanager
    def hold(self, uid: str, watch: TargetPodsWatch) -> Iterator[None]:
        """Answers with `watch` within the block."""
        self._watches[uid] = watch
        try:
            yield
        finally:
            del self._watches[uid]

    def find_pods(self, uid: str) -> TargetPods:
        """The pods of a request as last seen."""
        watch = self._watches.get(uid)
        if watch is None:
            return TargetPods(reason=LOOKING, message="the operator has not looked for the pods yet")
        return watch.current()
