"""The object store from the event loop: every call runs in a thread of its own small pool.

Guarantees: a store that hangs blocks these threads only, never the event loop and never the default executor.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fleetprof_store.base import NotFound, ObjectInfo, Store

_Result = TypeVar("_Result")


class StoreCalls:
    """A store whose methods are awaited. Raises what the store raises."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="fleetprof-store")

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """The result of a blocking call that uses the store."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def list(self, prefix: str) -> list[ObjectInfo]:
        """All objects below a prefix."""
        return await self.run(lambda: list(self.store.list(prefix)))

    async def get_if_there(self, key: str) -> bytes | None:
        """An object's bytes; None when there is none."""
        try:
            return await self.run(lambda: self.store.get(key))
        except NotFound:
            return None

    async def get_beginning(self, key: str, most_bytes: int) -> bytes:
        """An object's first bytes; none where there is no such object."""

        def read() -> bytes:
            with self.store.open(key) as file:
                return file.read(most_bytes)

        try:
            return await self.run(read)
        except NotFound:
            return b""

    def close(self) -> None:
        """Lets threads end; calls under way are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
