"""One bucket of several clusters as the web UI of one of them reads it.

Each cluster writes below `clusters/NAME/` (`keys.cluster_root`). A reader of cluster `own` finds its own captures, and
those that were written before clusters had names, under their namespaces; those of another cluster under
`CLUSTER.NAMESPACE` (`keys.qualify`), which no namespace of Kubernetes is called: nobody takes one for the other.

Guarantees: reads alone; an object of another cluster is reached by its qualified namespace and by nothing else.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TypeVar

from fleetprof_api import keys

from fleetprof_store.base import Grant, NotFound, ObjectInfo, PartGrant, SigningStore, Store, StoreError, UploadPart

_Answer = TypeVar("_Answer")


class ClustersStore:
    """A view of `store`, whose root all clusters share, for the cluster `own`."""

    def __init__(self, store: Store, own: str) -> None:
        self._store = store
        self._own = own

    def put(self, key: str, data: bytes) -> None:
        """Refused."""
        raise _refuse()

    def get(self, key: str) -> bytes:
        """Reads a small object whole."""
        return self._read(key, self._store.get)

    def open(self, key: str) -> IO[bytes]:
        """Opens an object for streaming reads."""
        return self._read(key, self._store.open)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of an object."""
        return self._read(key, lambda place: self._store.read_range(place, start, length))

    def head(self, key: str) -> ObjectInfo:
        """One object as it would be listed."""
        info = self._read(key, self._store.head)
        return ObjectInfo(key, info.size_bytes, info.version)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects below a prefix, in key order, each once: of an old and a new one the new one."""
        last = ""
        for info in heapq.merge(*self._list_parts(prefix), key=lambda info: info.key):
            if info.key != last:
                last = info.key
                yield info

    def delete(self, keys: Sequence[str]) -> None:
        """Refused."""
        raise _refuse()

    def locate(self, key: str) -> str:
        """The object's address for people."""
        return self._store.locate(self._find(key))

    def grant_upload(self, key: str, parts: Sequence[UploadPart], *, lifetime_s: int) -> Grant:
        """Refused."""
        raise _refuse()

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> None:
        """Refused."""
        raise _refuse()

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Refused."""
        raise _refuse()

    def sign_read(self, key: str, *, lifetime_s: int, saved_as: str = "") -> PartGrant:
        """An address to GET one object."""
        if not isinstance(self._store, SigningStore):
            raise StoreError("this store signs no address", retryable=False)
        return self._store.sign_read(self._find(key), lifetime_s=lifetime_s, saved_as=saved_as)

    def sign_write(self, key: str, data: UploadPart, *, lifetime_s: int) -> PartGrant:
        """Refused."""
        raise _refuse()

    def _read(self, key: str, read: Callable[[str], _Answer]) -> _Answer:
        *places, last = self._list_places(key)
        for place in places:
            try:
                return read(place)
            except NotFound:
                continue
        return read(last)

    def _find(self, key: str) -> str:
        """The place that holds the object of a key; the last place where none does."""
        *places, last = self._list_places(key)
        for place in places:
            try:
                self._store.head(place)
            except NotFound:
                continue
            return place
        return last

    def _list_places(self, key: str) -> Sequence[str]:
        namespace, _, rest = key.removeprefix(f"{keys.MAJOR}/").partition("/")
        cluster, plain = keys.split_qualified(namespace)
        below = f"{keys.MAJOR}/{plain}/{rest}"
        if cluster == self._own or (cluster and not keys.is_cluster_name(cluster)):
            raise NotFound(key)
        if cluster:
            return [keys.cluster_root(cluster) + below]
        # The second is from before clusters had names.
        return [keys.cluster_root(self._own) + below, below]

    def _list_parts(self, prefix: str) -> Sequence[Iterator[ObjectInfo]]:
        if prefix != f"{keys.MAJOR}/":
            namespace, _, rest = prefix.removeprefix(f"{keys.MAJOR}/").partition("/")
            cluster, plain = keys.split_qualified(namespace)
            below = f"{keys.MAJOR}/{plain}/{rest}"
            if cluster == self._own or (cluster and not keys.is_cluster_name(cluster)):
                return []
            if cluster:
                return [self._list_of(cluster, below)]
            return [self._list_of(self._own, below), self._list_of("", below)]
        # Not in the order of the keys, since `-` and digits sort before `/` and after `.`.
        found = sorted(self._list_others(), key=lambda info: info.key)
        return [self._list_of(self._own, prefix), self._list_of("", prefix), iter(found)]

    def _list_others(self) -> Iterator[ObjectInfo]:
        for info in self._store.list(keys.CLUSTERS):
            cluster, _, below = info.key.removeprefix(keys.CLUSTERS).partition("/")
            if cluster != self._own and keys.is_cluster_name(cluster):
                yield from _rename(info, cluster, below)

    def _list_of(self, cluster: str, prefix: str) -> Iterator[ObjectInfo]:
        root = keys.cluster_root(cluster)
        for info in self._store.list(root + prefix):
            yield from _rename(info, "" if cluster in ("", self._own) else cluster, info.key.removeprefix(root))


def _rename(info: ObjectInfo, cluster: str, below: str) -> Iterator[ObjectInfo]:
    major, _, rest = below.partition("/")
    namespace, _, name = rest.partition("/")
    # What has a dot already would be taken for another cluster's.
    if major == keys.MAJOR and name and keys.split_qualified(namespace) == ("", namespace):
        yield ObjectInfo(f"{major}/{keys.qualify(cluster, namespace)}/{name}", info.size_bytes, info.version)


def _refuse() -> StoreError:
    return StoreError("a bucket of several clusters is only read here", retryable=False)
