"""The API server's answers for the unit tests of identity; the real one is in test_with_api_server.py."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_operator.kubernetes.cluster import Cluster


class ScriptedCluster(Cluster):
    """Objects by path; a write with an old version is refused, as the real one does."""

    def __init__(self, objects: dict[str, dict[str, Any]] | None = None) -> None:
        self.objects = objects or {}
        self.calls: list[str] = []
        self.review: Callable[[str], dict[str, Any]] = lambda token: {}
        self.before_write: Callable[[], None] = lambda: None
        self.is_away = False
        self.hangs = False  # reads wait for ever

    async def get(
        self, path: str, *, metadata_only: bool = False, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        self._note("GET", path)
        if self.hangs:
            await asyncio.Event().wait()
        if path not in self.objects:
            raise ApiRefused(404, "NotFound", f"{path} not found")
        return self.objects[path]

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._note("POST", path)
        return {**body, "status": self.review(body["spec"]["token"])}

    async def merge(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._note("PATCH", path)
        self.before_write()
        found = self.objects[path]
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            raise ApiRefused(409, "Conflict", "the object has been modified")
        version = str(int(found["metadata"]["resourceVersion"]) + 1)
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        self.objects[path] = _merge(found, body)
        return self.objects[path]

    def _note(self, verb: str, path: str) -> None:
        self.calls.append(f"{verb} {path}")
        if self.is_away:
            raise ApiUnreachable("connection refused")


def _merge(found: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    merged = {key: value for key, value in found.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            merged[key] = _merge(merged.get(key) or {}, value)
        elif value is not None:
            merged[key] = value
    return merged
