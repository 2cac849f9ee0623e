"""Tells if the object store takes what a capture will give it: a small object is written and read back at times.

Guarantees: a bucket, a key or an authority that is wrong shows before the first capture; an outage is one line in the
log, and its end another.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from fleetprof_api import keys
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.storage.store_calls import StoreCalls

log = logging.getLogger(__name__)

LOOK_S: Final = 60.0
AGAIN_S: Final = 5.0  # while it refuses
PATIENCE_S: Final = 30.0


class StoreProbe:
    """Let `run` run. `namespace` is the operator's own; `trouble` is what the store said last, "" where it works."""

    def __init__(self, calls: StoreCalls, namespace: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._calls = calls
        self._key = keys.probe_key(namespace)
        self._clock = clock
        self.tried = False
        self.trouble = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(AGAIN_S if self.trouble else LOOK_S)

    async def look(self) -> str:
        """One try; what the store says against it."""
        written = str(self._clock()).encode()
        trouble = ""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._calls.run(lambda: self._calls.store.put(self._key, written))
                if await self._calls.run(lambda: self._calls.store.get(self._key)) != written:
                    trouble = "it gives back something else than what was written"
        except StoreError as error:
            trouble = str(error)
        except TimeoutError:
            trouble = f"no answer within {PATIENCE_S:.0f} s"
        if trouble and not self.trouble:
            log.error("the object store cannot be used: %s", trouble)
        elif self.trouble and not trouble:
            log.info("the object store can be used again")
        self.tried, self.trouble = True, trouble
        return trouble
