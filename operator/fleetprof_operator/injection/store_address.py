"""The object store's address for pods that cannot resolve the cluster's names: DNS tells it to the webhook.

Guarantees: only a name that the cluster alone knows is looked up; a look-up that fails leaves the last answer in place,
and one that hangs holds nobody up.
"""

import asyncio
import logging
import socket
import time
from typing import Final

from fleetprof_operator.injection.pods.sidecar_settings import is_cluster_name

_PATIENCE_S: Final = 3.0
LOOK_AGAIN_S: Final = 60.0

log = logging.getLogger(__name__)


class StoreAddress:
    """The address of the store `host`; call `look_up` now and then. `ip` is "" while it is not known, or not needed."""

    def __init__(self, host: str) -> None:
        self.ip = ""
        self._host = host
        self._known_at = -LOOK_AGAIN_S
        self._failing = False

    async def look_up(self) -> None:
        """Asks DNS, unless that was done a while ago."""
        if not is_cluster_name(self._host) or time.monotonic() < self._known_at + LOOK_AGAIN_S:
            return
        try:
            async with asyncio.timeout(_PATIENCE_S):
                loop = asyncio.get_running_loop()
                found = await loop.getaddrinfo(self._host, None, type=socket.SOCK_STREAM)
        except (OSError, TimeoutError) as problem:
            if not self._failing:  # it is asked again every few seconds
                why = str(problem) or "DNS does not answer"
                log.warning("the address of the store %s is not known: %s", self._host, why)
            self._failing = True
            return
        self._failing = False
        self.ip, self._known_at = str(found[0][4][0]), time.monotonic()
