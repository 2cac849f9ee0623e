"""The Kubernetes API in memory: objects by path, watches, refusals. Its real counterpart is tested in tests/kubectl."""

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from fleetprof_api.process.kubernetes_errors import ApiRefused

Json = dict[str, Any]


class MemoryCluster:
    """The calls of `Cluster`, over a dict. `refusals` maps (method, path) to what is raised."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.refusals: dict[tuple[str, str], Exception] = {}
        self._version = 0
        self._watchers: list[tuple[str, Mapping[str, str], asyncio.Queue[tuple[str, Json] | Exception | None]]] = []

    async def get(self, path: str, *, metadata_only: bool = False) -> Json:
        self._refuse("GET", path)
        if path not in self.objects:
            raise ApiRefused(404, "NotFound", f"{path} not found")
        return copy.deepcopy(self.objects[path])

    async def create(self, path: str, body: Json) -> Json:
        self._refuse("POST", path)
        document = copy.deepcopy(body)
        name = document["metadata"]["name"]
        if f"{path}/{name}" in self.objects:
            raise ApiRefused(409, "AlreadyExists", f"{name} already exists")
        self._version += 1
        document["metadata"] |= {"uid": f"uid-{self._version}", "creationTimestamp": "2026-11-21T09:45:12Z"}
        self.put(f"{path}/{name}", document)
        return copy.deepcopy(document)

    async def merge(self, path: str, body: Json) -> Json:
        """A merge patch of metadata's annotations, with the uid as its condition."""
        self._refuse("PATCH", path)
        document = await self.get(path)
        if body["metadata"].get("uid") not in (None, document["metadata"]["uid"]):
            raise ApiRefused(409, "Conflict", "the UID in the precondition does not match")
        document["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        self.put(path, document)
        return copy.deepcopy(document)

    async def delete(self, path: str, options: Json | None = None) -> None:
        self._refuse("DELETE", path)
        if path not in self.objects:
            raise ApiRefused(404, "NotFound", f"{path} not found")
        self._tell("DELETED", self.objects.pop(path), path)

    async def list(
        self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> tuple[list[Json], str]:
        self._refuse("LIST", path)
        found = [o for p, o in self.objects.items() if p.rpartition("/")[0] == path and _fits(o, query or {})]
        return copy.deepcopy(found), str(self._version)

    async def pages(
        self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[tuple[Sequence[Json], str]]:
        yield await self.list(path, query, metadata_only=metadata_only)

    async def watch(
        self, path: str, query: Mapping[str, str], version: str, *, metadata_only: bool = False
    ) -> AsyncIterator[tuple[str, Json]]:
        queue: asyncio.Queue[tuple[str, Json] | Exception | None] = asyncio.Queue()
        self._watchers.append((path, query, queue))
        while event := await queue.get():
            if isinstance(event, Exception):
                raise event
            yield event

    def put(self, path: str, document: Json) -> None:
        """The object is there, and watchers are told."""
        kind = "MODIFIED" if path in self.objects else "ADDED"
        self.objects[path] = document
        self._tell(kind, document, path)

    def watched(self) -> int:
        """The number of watches that were ever opened."""
        return len(self._watchers)

    def end_watches(self, error: Exception | None = None) -> None:
        """The server ends them all, or they break."""
        for _, _, queue in self._watchers:
            queue.put_nowait(error)

    def _tell(self, kind: str, document: Json, path: str) -> None:
        self._version += 1
        for watched, query, queue in self._watchers:
            if path.rpartition("/")[0] == watched and _fits(document, query):
                queue.put_nowait((kind, copy.deepcopy(document)))

    def _refuse(self, method: str, path: str) -> None:
        if error := self.refusals.get((method, path)):
            raise error


def _fits(document: Json, query: Mapping[str, str]) -> bool:
    wanted = query.get("fieldSelector", "")
    if wanted.startswith("metadata.name="):
        return bool(document["metadata"]["name"] == wanted.partition("=")[2])
    labels = document["metadata"].get("labels") or {}
    pairs = [part.partition("=") for part in query.get("labelSelector", "").split(",") if part]
    return all(labels.get(key) == value if equals else key in labels for key, equals, value in pairs)
