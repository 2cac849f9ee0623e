"""The three stores behind one fixture, and the PUT that a sidecar would send."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from fleetprof_operator.hub.storage.uploads import serve_uploads
from fleetprof_store.base import PartGrant, Store, StoreError
from fleetprof_store.directory import DirectoryStore
from harness.memory_store import MemoryStore


@pytest.fixture
def served_directory(tmp_path: Path) -> Iterator[DirectoryStore]:
    """A DirectoryStore whose signed PUTs are served from another thread."""
    store = DirectoryStore(tmp_path / "store", b"s" * 32, "")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(
        serve_uploads(store, socket.create_server(("127.0.0.1", 0))), loop
    ).result(10)
    yield store
    asyncio.run_coroutine_threadsafe(running.close(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.fixture(params=["memory", "directory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest) -> Store:
    match request.param:
        case "memory":
            return MemoryStore()
        case "directory":
            found: Store = request.getfixturevalue("served_directory")
            return found
        case _:
            server = request.getfixturevalue("s3_server")
            found = server.make_store(server.make_bucket())
            return found


@pytest.fixture
def put_part(store: Store) -> Iterator[Callable[[PartGrant, bytes], tuple[int, str]]]:
    """PUTs bytes to a grant as it says; returns (status, ETag)."""
    with urllib3.PoolManager(retries=False) as http:

        def put(grant: PartGrant, data: bytes) -> tuple[int, str]:
            if isinstance(store, MemoryStore):
                try:
                    return 200, store.receive(grant.url, data)
                except StoreError:
                    return 403, ""
            # A client that lies about the length sends a length that fits its bytes: http.client needs that.
            headers: dict[str, Any] = dict(grant.headers) | {"Content-Length": str(len(data))}
            answer = http.request("PUT", grant.url, body=data, headers=headers)
            return answer.status, answer.headers.get("etag", "")

        yield put
