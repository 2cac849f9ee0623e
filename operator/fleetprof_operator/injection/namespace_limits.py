"""The quotas and limit ranges of namespaces, read from the API server when a pod is about to be changed.

Needs the verb `list` on resourcequotas and limitranges, nothing else.
Guarantees: a reading takes at most PATIENCE_S; pods that come together share one; a namespace that limits nothing is
asked again after UNLIMITED_S only, another one for every pod (what is used changes with each).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fleetprof_api.errors import FleetprofError

from fleetprof_operator.injection.pods.quota_check import NamespaceLimits

PATIENCE_S: Final = 0.6
UNLIMITED_S: Final = 30.0
_MOST_REMEMBERED: Final = 10_000
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

Json = dict[str, Any]
ListObjects = Callable[[str], Awaitable[list[Json]]]
"""The objects at a path of the API; raises what it likes."""


class UnknownLimits(FleetprofError):
    """The namespace's limits could not be read; the message says why."""


class NamespaceLimitsReader:
    """Reads through `list_objects`; call it in one event loop."""

    def __init__(self, list_objects: ListObjects) -> None:
        self._list = list_objects
        self._unlimited_until: dict[str, float] = {}
        self._reading: dict[str, asyncio.Task[NamespaceLimits]] = {}

    async def read(self, namespace: str) -> NamespaceLimits:
        """The limits of a namespace now. Raises UnknownLimits."""
        if not _NAMESPACE.fullmatch(namespace):
            # It becomes part of a path, where `..` or `?` would read something else with our rights.
            raise UnknownLimits(f"{namespace[:80]!r} is no namespace")
        now = asyncio.get_running_loop().time()
        if self._unlimited_until.get(namespace, 0.0) > now:
            return NamespaceLimits()
        task = self._reading.get(namespace)
        if task is None:
            task = self._reading[namespace] = asyncio.create_task(self._read(namespace))
            task.add_done_callback(lambda future: self._end_reading(namespace, future))
        try:
            async with asyncio.timeout(PATIENCE_S):
                limits = await asyncio.shield(task)
        except TimeoutError:
            raise UnknownLimits(f"the API server did not tell the limits of {namespace} in {PATIENCE_S:g} s") from None
        except Exception as problem:
            raise UnknownLimits(f"the limits of {namespace} cannot be read: {problem}") from None
        if not limits.quotas and not limits.limit_ranges:
            if len(self._unlimited_until) >= _MOST_REMEMBERED:
                self._unlimited_until.clear()
            self._unlimited_until[namespace] = now + UNLIMITED_S
        return limits

    def _end_reading(self, namespace: str, task: asyncio.Task[NamespaceLimits]) -> None:
        self._reading.pop(namespace, None)
        # Everybody who waited may have given up: its failure has been said then.
        if not task.cancelled():
            task.exception()

    async def _read(self, namespace: str) -> NamespaceLimits:
        # From the API server's memory: a pod must not wait for etcd.
        of = f"/api/v1/namespaces/{namespace}"
        async with asyncio.timeout(2 * PATIENCE_S):
            quotas, ranges = await asyncio.gather(self._list(f"{of}/resourcequotas"), self._list(f"{of}/limitranges"))
        return NamespaceLimits(quotas=quotas, limit_ranges=ranges)
