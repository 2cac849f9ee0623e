"""Brings one request's ledger into the store whenever it changed, for as long as that takes.

Guarantees: changes within a short interval are one write; the last state is always written in the end, through any
outage of the store, while `run` runs; a failed write is told once and repeated.
"""

import asyncio
import logging
from collections.abc import Callable

from fleetprof_store.base import StoreError

from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from fleetprof_operator.hub.storage.store_calls import StoreCalls

log = logging.getLogger(__name__)


class LedgerWriter:
    """Writes the ledger under `key`. `snapshot` gives what makes its bytes, which is called in a thread.

    `trouble` says why the latest write failed, empty when it did not; `refused`: it failed for a reason that does not
    pass by itself, such as wrong credentials.
    """

    def __init__(
        self, calls: StoreCalls, key: str, snapshot: Callable[[], Callable[[], bytes]], settings: HubSettings
    ) -> None:
        self._calls = calls
        self._key = key
        self._snapshot = snapshot
        self._settings = settings
        self._wanted = 0
        self._written = 0
        self._touched = asyncio.Event()
        self._progress = asyncio.Event()
        self.trouble = ""
        self.refused = False

    def touch(self) -> None:
        """The ledger has changed."""
        self._wanted += 1
        self._touched.set()

    async def flush(self, patience_ns: int, *, unless_refused: bool = False) -> bool:
        """Waits until all changes so far are in the store. False when that took longer, or the store refuses us."""
        wanted = self._wanted
        try:
            async with asyncio.timeout(patience_ns / SECOND_NS):
                while self._written < wanted:
                    if unless_refused and self.refused:
                        return False
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            await self._touched.wait()
            self._touched.clear()
            wanted, make = self._wanted, self._snapshot()
            try:
                await self._calls.run(lambda make=make: self._calls.store.put(self._key, make()))  # type: ignore[misc]
            except StoreError as error:
                if not self.trouble:
                    log.warning("%s cannot be written and will be tried again: %s", self._key, error)
                self.trouble, self.refused = str(error), not error.retryable
                self._progress.set()
                self._touched.set()
                await asyncio.sleep(self._settings.store_retry_ns / SECOND_NS)
                continue
            self.trouble, self.refused = "", False
            self._written = wanted
            self._progress.set()
            await asyncio.sleep(self._settings.write_interval_ns / SECOND_NS)
