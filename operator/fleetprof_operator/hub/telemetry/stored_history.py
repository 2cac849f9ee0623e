"""The history of telemetry in the object store: one document for each namespace.

Guarantees: what cannot be written is written with the next points; a hub that is killed loses WRITE_S of history, and
one that ends loses none; what cannot be read is begun anew and said in the log.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from fleetprof_api import keys
from fleetprof_api.telemetry.history import InvalidHistory, read_day, write_day
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.history import TelemetryHistory

log = logging.getLogger(__name__)

LOOK_S: Final = 30.0
WRITE_S: Final = 600.0


class StoredHistory:
    """Let `run` run, and `close` once it is cancelled. `written_bytes` by namespace; `writes` by result."""

    def __init__(self, calls: StoreCalls, board: TelemetryBoard, clock: Callable[[], int] = time.time_ns) -> None:
        self._calls = calls
        self._board = board
        self._clock = clock
        self._history = TelemetryHistory()
        self._read: set[str] = set()
        self.written_bytes: dict[str, int] = {}
        self.writes: Counter[str] = Counter(stored=0, failed=0)

    async def run(self) -> None:
        """Until cancelled."""
        written = time.monotonic()
        while True:
            await self.look()
            if time.monotonic() - written >= WRITE_S:
                written = time.monotonic()
                await self.write()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Notes what all workloads do now."""
        now = self._clock()
        self._board.sweep(now)
        boards = self._board.boards()
        for namespace in {board.namespace for board in boards} - self._read:
            await self._restore(namespace, now)
        known = [board for board in boards if board.namespace in self._read]
        self._history.take((board.figures() for board in known), now)

    async def write(self) -> None:
        """Stores what is new."""
        for namespace in sorted(self._history.changed):
            day = self._history.write(namespace)
            try:
                data = await asyncio.to_thread(write_day, day)
                key = keys.telemetry_day_key(namespace)
                await self._calls.run(lambda key=key, data=data: self._calls.store.put(key, data))  # type: ignore[misc]
            except StoreError as error:
                self._history.changed.add(namespace)
                self.writes["failed"] += 1
                log.warning("the telemetry of %s is not stored yet: %s", namespace, error)
                continue
            self.writes["stored"] += 1
            self.written_bytes[namespace] = len(data)

    @property
    def kept_bytes(self) -> int:
        """The bytes that it keeps in memory."""
        return self._history.kept_bytes

    async def close(self) -> None:
        """Stores the rest."""
        await self.write()

    async def _restore(self, namespace: str, now_unix_ns: int) -> None:
        try:
            data = await self._calls.get_if_there(keys.telemetry_day_key(namespace))
            if data is not None:
                self._history.restore(namespace, read_day(data), now_unix_ns)
        except keys.InvalidKeyPart:
            return
        except StoreError as error:
            log.warning("the telemetry of %s cannot be read yet: %s", namespace, error)
            return
        except InvalidHistory as error:
            log.warning("the telemetry of %s begins anew: %s", namespace, error)
        self._read.add(namespace)
