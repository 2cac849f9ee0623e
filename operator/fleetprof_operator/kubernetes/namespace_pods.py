"""The pods of a namespace that are not over, as one watch tells them: how many ask for them costs no further call.

Guarantees: of a pod only `SeenPod` stay in memory; a namespace is watched while somebody asks for its pods, and some
time after that; a fault of a watch is logged, and the watch begun again. Rights: list and watch pods.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from sys import intern
from typing import Final

from fleetprof_api.pods import INJECTED_ANNOTATION, WITHOUT_SIDECAR_ANNOTATION

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.kubernetes.listing import Listing
from fleetprof_operator.kubernetes.owners import Owners
from fleetprof_operator.kubernetes.pod_trouble import explain
from fleetprof_operator.kubernetes.workloads import PodQuery

log = logging.getLogger(__name__)

_NOT_OVER: Final = "status.phase!=Succeeded,status.phase!=Failed"
_LINGER_S: Final = 30.0  # a request often follows another
_AFTER_FAULT_S: Final = 5.0
_NAME: Final = "name of the pod"  # in place of a label: no label has a space


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """The facts that are kept of a pod. `trouble` says why it, or its sidecar, does not run; "" where nothing tells.

    `without_sidecar`: why it went on without the one that it had got; "" where it did not.
    """

    uid: str
    name: str
    labels: Mapping[str, str]
    injected: bool
    without_sidecar: str
    pending: bool
    terminating: bool
    trouble: str
    created_unix_ns: int
    owners: Sequence[Json]


@dataclass(slots=True)
class _Shelf:
    """`version` is that of all pods when one of these changed last, so that a shelf that is made anew differs."""

    pods: dict[str, SeenPod] = field(default_factory=dict)
    version: int = 0


_EMPTY: Final = _Shelf()


class NamespacePods:
    """Pods are known once `complete`; `trouble` says what keeps them from being listed. Let `run` run."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.owners = Owners(cluster, namespace)
        self._all = _Shelf()
        self._shelves: dict[str, dict[str, _Shelf]] = {}  # of each label in use: value → pods
        self._users = Counter[str]()  # of each label
        self._news = asyncio.Event()
        path, query = f"/api/v1/namespaces/{namespace}/pods", {"fieldSelector": _NOT_OVER}
        self._listing = Listing(cluster, path, query, keep=_read_facts, on_change=self._note, whole=True)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._listing.run()
            except Exception:
                log.exception("the watch of pods ends by a fault; it is begun again")
                await asyncio.sleep(_AFTER_FAULT_S)

    @property
    def complete(self) -> bool:
        """Tells whether all pods are known."""
        return self._listing.complete

    @property
    def trouble(self) -> str:
        """The reason why pods cannot be listed at present; empty when they can."""
        return self._listing.trouble

    @contextmanager
    def use(self, query: PodQuery) -> Iterator[None]:
        """Within the block `find` and `version` may be asked about this query."""
        label, _ = _read_shelf(query)
        if label not in self._shelves and label is not None:
            self._shelves[label] = {}
            for pod in self._listing.objects.values():
                self._put(label, pod, is_there=True)
        self._users[label or ""] += 1
        try:
            yield
        finally:
            self._users[label or ""] -= 1
            if label is not None and not self._users[label]:
                del self._shelves[label]

    def find(self, query: PodQuery) -> list[SeenPod]:
        """The pods of a query, but for its owner."""
        pods = self._find_shelf(query).pods.values()
        return [pod for pod in pods if query.selector is None or query.selector.matches(dict(pod.labels))]

    def version(self, query: PodQuery) -> int:
        """Another number with each change of what `find` says."""
        return self._find_shelf(query).version

    async def wait_for_news(self, seen_version: int) -> None:
        """Returns when some pod is not as it was at that version of all pods."""
        while self._all.version == seen_version:
            await self._news.wait()

    def _find_shelf(self, query: PodQuery) -> _Shelf:
        label, value = _read_shelf(query)
        return self._all if label is None else self._shelves[label].get(value, _EMPTY)

    def _note(self, uid: str, before: SeenPod | None, now: SeenPod | None) -> None:
        self._all.version += 1
        for pod, is_there in ((before, False), (now, True)):
            if pod is not None:
                _change(self._all, pod, is_there=is_there)
                for label in self._shelves:
                    self._put(label, pod, is_there=is_there)
        self._news.set()
        self._news = asyncio.Event()

    def _put(self, label: str, pod: SeenPod, *, is_there: bool) -> None:
        value = pod.name if label == _NAME else pod.labels.get(label)
        if value is None:
            return
        shelf = self._shelves[label].setdefault(value, _Shelf())
        shelf.version = self._all.version
        _change(shelf, pod, is_there=is_there)
        if not shelf.pods:
            del self._shelves[label][value]


class SharedPods:
    """The pods of each namespace of which somebody asks for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._namespaces: dict[str, NamespacePods] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def of(self, namespace: str) -> Iterator[NamespacePods]:
        """The pods of a namespace, watched within the block."""
        pods = self._namespaces.get(namespace)
        if pods is None:
            pods = self._namespaces[namespace] = NamespacePods(self._cluster, namespace)
            self._tasks[namespace] = asyncio.create_task(pods.run())
        self._users[namespace] = self._users.get(namespace, 0) + 1
        try:
            yield pods
        finally:
            self._users[namespace] -= 1
            if not self._users[namespace]:
                asyncio.get_running_loop().call_later(_LINGER_S, self._end_unused, namespace)

    async def close(self) -> None:
        """Ends all watches."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end_unused(self, namespace: str) -> None:
        if not self._users.get(namespace) and namespace in self._tasks:
            self._tasks.pop(namespace).cancel()
            del self._namespaces[namespace], self._users[namespace]


def _read_shelf(query: PodQuery) -> tuple[str | None, str]:
    """On which shelf the pods of a query are, and others; None: anywhere."""
    if query.name:
        return _NAME, query.name
    labels = query.selector and query.selector.match_labels
    return next(iter(labels.items())) if labels else (None, "")


def _change(shelf: _Shelf, pod: SeenPod, *, is_there: bool) -> None:
    if is_there:
        shelf.pods[pod.uid] = pod
    else:
        shelf.pods.pop(pod.uid, None)


def _read_facts(pod: Json) -> SeenPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return SeenPod(
        uid=metadata["uid"],
        name=metadata["name"],
        labels={intern(key): value for key, value in (metadata.get("labels") or {}).items()},
        injected=INJECTED_ANNOTATION in annotations,
        without_sidecar=str(annotations.get(WITHOUT_SIDECAR_ANNOTATION) or ""),
        pending=status.get("phase") == "Pending",
        terminating="deletionTimestamp" in metadata,
        trouble=explain(status),
        created_unix_ns=int(created.timestamp()) * 10**9,
        owners=metadata.get("ownerReferences") or (),
    )
