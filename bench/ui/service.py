"""The service in a process of its own, as `fleetprof ui` starts it, so that its memory is its own.

    python bench/ui/service.py STORE CATALOG TOKENS

Prints one line of JSON: the port and so many one-time tokens. It ends when its standard input does. STORE `-`: a store
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
from fleetprof_store.memory import MemoryStore  # noqa: E402
from fleetprof_webui.local import serve_locally  # noqa: E402


class SilentStore(MemoryStore):
    """A store that does not answer."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        raise StoreError("this store is not there", retryable=True)


@dataclass(frozen=True)
class Running:
    """A service that answers, and the tokens that sign in to it."""

    port: int
    tokens: list[str]
    pid: int

    def peak_mib(self) -> int:
        """The most memory that it held at once."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@contextmanager
def run_service(store: str, catalog_url: str, tokens: int = 1) -> Iterator[Running]:
    """A service until the block ends."""
    command = [sys.executable, __file__, store, catalog_url, str(tokens)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    try:
        said = json.loads(process.stdout.readline())
        yield Running(said["port"], said["tokens"], process.pid)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


async def main(store: str, catalog_url: str, tokens: int) -> None:
    from ui.captures import open_store

    opened = SilentStore() if store == "-" else open_store(Path(store))
    async with serve_locally(opened, catalog_url, port=0, captures=None, look_every_s=3600) as site:
        print(json.dumps({"port": site.port, "tokens": [site.access.make_token() for _ in range(tokens)]}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
