"""Brings one request's status into its object, for as long as that takes, and no more often than people need.

Guarantees: nothing is written that is there already; another condition is written within a second, counts and sentences
alone within five; the latest wish is always written in the end; an object that is gone ends the writing, and another
of the same name that took its place is never written to (the API server does not see to that: each write tests the
uid). Each write is one JSON patch of the `status` subresource.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster, Json, wait_to_try_again
from fleetprof_operator.profilerequests.status import differ_much

log = logging.getLogger(__name__)

SOON_S: Final = 1.0
LATER_S: Final = 5.0


class StatusWriter:
    """Writes what `want` was last told. `known` is the status that the object has. Let `run` run; `flush` waits."""

    def __init__(self, cluster: Cluster, path: str, uid: str, known: Json, *, on_write: Callable[[], None]) -> None:
        self._cluster = cluster
        self._path = path
        self._uid = uid
        self._on_write = on_write
        self._wanted = known
        self._wishes = asyncio.Event()
        self._urgent = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._written_at = -LATER_S
        self.known = known
        self.is_deleted = False

    def want(self, status: Json) -> None:
        """The status that the object should have."""
        self._wanted = status
        if status != self.known and not self.is_deleted:
            self._settled.clear()
            self._wishes.set()
            if differ_much(self.known, status):
                self._urgent.set()

    async def flush(self) -> None:
        """Waits until the object has what is wanted, or is gone."""
        self._urgent.set()
        await self._settled.wait()

    async def run(self) -> None:
        """Until cancelled, or the object is gone."""
        tries = 0
        while not self.is_deleted:
            await self._wishes.wait()
            await self._pause()
            self._wishes.clear()
            self._urgent.clear()
            wanted = self._wanted
            try:
                if wanted != self.known:
                    await self._write(wanted)
                self._written_at = time.monotonic()
                tries = 0
            except (ApiRefused, ApiUnreachable) as error:
                self.is_deleted = isinstance(error, ApiRefused) and await self._is_gone(error)
                if not self.is_deleted:
                    log.warning("the status cannot be written and will be tried again: %s", error)
                    self._wishes.set()
                    await wait_to_try_again(tries)
                    tries += 1
            if self.is_deleted or self._wanted == self.known:
                self._settled.set()

    async def _write(self, status: Json) -> None:
        own = {"op": "test", "path": "/metadata/uid", "value": self._uid}
        await self._cluster.patch(f"{self._path}/status", [own, {"op": "add", "path": "/status", "value": status}])
        self._on_write()
        self.known = status

    async def _is_gone(self, refusal: ApiRefused) -> bool:
        """Tells whether that is why a write was refused: 404, or 422 because the uid is another's."""
        if refusal.status != 422:
            return refusal.status == 404
        path, _, name = self._path.rpartition("/")
        try:
            found, _ = await self._cluster.list(path, {"fieldSelector": f"metadata.name={name}"}, metadata_only=True)
        except (ApiRefused, ApiUnreachable):
            return False
        return all(body["metadata"]["uid"] != self._uid for body in found)

    async def _pause(self) -> None:
        """Between two writes: short when something of weight has changed, longer otherwise."""
        since = time.monotonic() - self._written_at
        await asyncio.sleep(max(0.0, SOON_S - since))
        try:
            async with asyncio.timeout(max(0.0, LATER_S - max(since, SOON_S))):
                await self._urgent.wait()
        except TimeoutError:
            pass
