"""The threads that uploads block: few of them, because each upload holds one part in memory.

Guarantees: the event loop never waits for the network; after `close` no upload begins, and one that hangs holds nobody.
"""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from fleetprof_sidecar.capture.process_capture import StoredFile
from fleetprof_sidecar.delivery.spool import Spool
from fleetprof_sidecar.delivery.upload import GrantedPart
from fleetprof_sidecar.delivery.upload_connections import UploadConnections

# Each upload holds one part of 8 MiB in memory.
_UPLOADS_AT_ONCE: Final = 2


class UploadThreads:
    """Uploads files of `spool` over `connections`."""

    def __init__(self, spool: Spool, connections: UploadConnections) -> None:
        self._spool = spool
        self._connections = connections
        self._threads = ThreadPoolExecutor(_UPLOADS_AT_ONCE, thread_name_prefix="upload")

    async def put(self, stored: StoredFile, grants: Sequence[GrantedPart], stop: threading.Event) -> list[str]:
        """Uploads every part in order and returns the ETags. Raises UploadBroken, FileDamaged, OSError."""
        path = self._spool.path_of(stored.name)
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, self._connections.put, path, stored, grants, stop
        )

    def close(self) -> None:
        """Begins no more uploads, and waits for none."""
        self._threads.shutdown(wait=False, cancel_futures=True)
