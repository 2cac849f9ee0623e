"""The objects of one query, listed once and then kept current by a watch: what other operators call an informer.

Guarantees: only metadata is asked for unless `whole`, and only what `keep` takes of an object stays in memory; a watch
that breaks or expires is begun again with a growing pause, and until then the last known objects stand; what keeps us
from listing is a sentence in `trouble`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster, Json, wait_to_try_again

log = logging.getLogger(__name__)

_Kept = TypeVar("_Kept")
_PAUSE_S: Final = 0.1  # between two watches, should a server end them at once


class Listing(Generic[_Kept]):
    """`objects` by uid, all of them as soon as `complete`. Let `run` run.

    `keep` gets an object's metadata, or with `whole` the object. `on_change` is told of each object that is not as it
    was: its uid, what was kept of it and what is, of which one is None for an object that came or went.
    """

    def __init__(
        self,
        cluster: Cluster,
        path: str,
        query: Mapping[str, str],
        *,
        keep: Callable[[Json], _Kept],
        on_change: Callable[[str, _Kept | None, _Kept | None], None] = lambda uid, before, after: None,
        whole: bool = False,
    ) -> None:
        self._cluster = cluster
        self._path = path
        self._query = query
        self._keep = keep
        self._on_change = on_change
        self._whole = whole
        self.objects: dict[str, _Kept] = {}
        self.complete = False
        self.trouble = ""

    async def run(self) -> None:
        """Until cancelled."""
        tries = 0
        while True:
            try:
                version = await self._list()
                tries = 0
                while True:
                    version = await self._watch(version)
            except ApiRefused as refusal:
                if refusal.status != 410:  # what the watch would go on from is too long ago
                    self._note(f"{self._path} cannot be listed: {refusal}")
            except ApiUnreachable as error:
                self._note(str(error))
            await wait_to_try_again(tries)
            tries += 1

    async def _list(self) -> str:
        found: dict[str, _Kept] = {}
        version = ""
        async for items, version in self._cluster.pages(self._path, self._query, metadata_only=not self._whole):  # noqa: B007
            found |= {item["metadata"]["uid"]: self._take(item) for item in items}
        for uid in [known for known in self.objects if known not in found]:
            self._put(uid, None)
        for uid, kept in found.items():
            self._put(uid, kept)
        self.complete, self.trouble = True, ""
        return version

    async def _watch(self, version: str) -> str:
        metadata_only = not self._whole
        async for kind, item in self._cluster.watch(self._path, self._query, version, metadata_only=metadata_only):
            metadata = item["metadata"]
            version = metadata["resourceVersion"]
            if kind == "BOOKMARK":
                continue
            self._put(metadata["uid"], None if kind == "DELETED" else self._take(item))
        await asyncio.sleep(_PAUSE_S)
        return version

    def _put(self, uid: str, kept: _Kept | None) -> None:
        before = self.objects.pop(uid, None) if kept is None else self.objects.get(uid)
        if kept is not None:
            self.objects[uid] = kept
        if kept != before:
            self._on_change(uid, before, kept)

    def _take(self, item: Json) -> _Kept:
        return self._keep(item if self._whole else item["metadata"])

    def _note(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("%s", trouble)
        self.trouble = trouble
