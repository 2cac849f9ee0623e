"""The service in a process of its own, as `fleetprof ui` starts it, so that its memory is its own.

    python bench/ui/service.py STORE CATALOG

Prints one line of JSON: the port and a one-time token. It ends when its standard input does. STORE `-`: a store
that does not answer, so that the catalog stays as it was filled.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from fleetprof_store.base import ObjectInfo, StoreError  # noqa: E402
from fleetprof_webui.local import serve_locally  # noqa: E402
from harness.memory_store import MemoryStore  # noqa: E402


class SilentStore(MemoryStore):
    """A store that does not answer."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        raise StoreError("this store is not there", retryable=True)


@dataclass(frozen=True)
class RunningService:
    """A service that answers, and the token that signs in to it."""

    port: int
    token: str
    pid: int

    def peak_mib(self) -> int:
        """The most memory that it held at once."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@contextmanager
def run_service(store: str, catalog_url: str) -> Iterator[RunningService]:
    """A service until the block ends."""
    command = [sys.executable, __file__, store, catalog_url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    try:
        line = json.loads(process.stdout.readline())
        yield RunningService(line["port"], line["token"], process.pid)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


async def main(store: str, catalog_url: str) -> None:
    from ui.captures import open_store

    opened = SilentStore() if store == "-" else open_store(Path(store))
    async with serve_locally(
        opened, catalog_url, port=0, captures=None, look_every_s=3600, announce=lambda _address: None
    ) as site:
        print(json.dumps({"port": site.port, "token": site.access.make_token()}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
