"""Analysis in a process of its own, at the lowest priority: the hub stays quick, and a bad trace can harm nobody.

Guarantees: at most one analysis runs at a time; it ends with the hub; what went wrong comes back as one sentence.
Run as a module it is that process: `python -m fleetprof_cli.local.analysis STORE_JSON NAMESPACE UID`, which has no use
for asyncio, whose import is a tenth of its start.
"""

import os
import sys
from typing import TYPE_CHECKING, Final

import msgspec
from fleetprof_api.errors import FleetprofError
from fleetprof_api.memory_shortage import HELPER, go_first
from fleetprof_api.process.import_path import own_environment

from fleetprof_cli.local.child import child_command
from fleetprof_cli.store_location import StoreLocation, open_store

if TYPE_CHECKING:
    from fleetprof_operator.hub.capture.environment import AnalysisOrder

_NICE: Final = 10
_SAID_BYTES: Final = 4096


class AnalysisFailed(FleetprofError):
    """The analysis ended without a report; the message is its last line."""


class LocalAnalyses:
    """Runs analyses one after the other for the hub."""

    def __init__(self, store: StoreLocation) -> None:
        import asyncio

        self._store = msgspec.json.encode(store).decode()
        self._turn = asyncio.Lock()

    async def analyze(self, order: "AnalysisOrder") -> None:
        """Makes report.json and report.html of one capture. Raises AnalysisFailed."""
        import asyncio

        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *child_command("fleetprof_cli.local.analysis", self._store, order.namespace, order.uid),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=own_environment(),
                start_new_session=True,
            )
            try:
                _, output = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if process.returncode != 0:
                lines = output[-_SAID_BYTES:].decode(errors="replace").strip().splitlines()
                raise AnalysisFailed(lines[-1] if lines else f"the analysis ended with code {process.returncode}")


def main() -> None:
    """Analyses one capture in this process."""
    os.nice(_NICE)
    go_first(HELPER)
    from fleetprof_analyzer.capture.memory import free_share, keep_freed_memory, limit_data, limits_within
    from fleetprof_analyzer.capture.store import analyze_capture

    memory_bytes = free_share(1)
    limit_data(memory_bytes)
    keep_freed_memory()
    location, namespace, uid = sys.argv[1:]
    store = open_store(msgspec.json.decode(location, type=StoreLocation))
    analyze_capture(store, namespace, uid, limits=limits_within(memory_bytes))


if __name__ == "__main__":
    main()
