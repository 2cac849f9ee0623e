"""The upload server's connections: silent, slow and foreign connections keep nobody out and fill no log."""

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_cli.local.network import make_certificate
from fleetprof_operator.hub.storage.uploads import serve_uploads
from fleetprof_operator.web.connections import Connections
from fleetprof_operator.web.refusals import Refusals
from fleetprof_store.base import UploadPart
from fleetprof_store.directory import DirectoryStore

BODY = b"granted bytes"
PART = UploadPart(len(BODY), hashlib.sha256(BODY).digest())
KEY = "v1/local/a/ranks/0/trace.json.gz"


# ---------------------------------------------------------------- what is logged: pure


def test_refusals_are_summed(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(logging.getLogger("x"), "uploads")
    for number in range(5000):
        refusals.note("silent", number * 0.01)
    refusals.tell(60)
    assert [record.message for record in caplog.records] == [
        "uploads refused: 1 × silent",
        "uploads refused: 3000 × silent",
        "uploads refused: 1999 × silent",
    ]


def test_the_latest_refusal_stands_for_all(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(logging.getLogger("x"), "calls")
    for number in range(3):
        refusals.note("BadToken", number, f"10.0.0.{number}: no token")
    refusals.tell(60)
    assert caplog.messages == [
        "calls refused: 1 × BadToken; the latest: 10.0.0.0: no token",
        "calls refused: 2 × BadToken; the latest: 10.0.0.2: no token",
    ]


def test_kinds_of_refusals_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(logging.getLogger("x"), "uploads")
    refusals.note("first", 0)
    for number in range(1000):
        refusals.note(f"reason {number}", 1)
    refusals.tell(60)
    assert "992 × other reasons" in caplog.messages[-1]


# ---------------------------------------------------------------- real connections


@pytest.fixture
async def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store", b"s" * 32, "")


@contextlib.asynccontextmanager
async def serving(
    store: DirectoryStore, tls: ssl.SSLContext | None, patience_s: float, most: int = 512
) -> AsyncIterator[Connections]:
    limits = ConnectionLimits(most=most, most_of_one=most, patience_s=patience_s, kept_s=patience_s)
    server = await serve_uploads(store, socket.create_server(("127.0.0.1", 0)), tls=tls, limits=limits)
    try:
        yield server
    finally:
        await server.close()


async def put(store: DirectoryStore, port: int, tls: ssl.SSLContext | None = None, body: bytes = BODY) -> bytes:
    """The status line that a granted PUT is answered with; empty when it was cut."""
    grant = store.grant_upload(KEY, [PART], lifetime_s=60).parts[0]
    path = "/" + grant.url.split("/", 3)[3]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        writer.write(f"PUT {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + body)
        return await reader.readline()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's, the client's."""
    certificate, key = make_certificate("127.0.0.1", datetime.now(UTC))
    (tmp_path / "c.pem").write_bytes(certificate)
    (tmp_path / "k.pem").write_bytes(key)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    return server, ssl.create_default_context(cadata=certificate.decode())


@pytest.mark.attack
@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("first", [b"", b"P", b"PUT /objects/x HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "P", "header"])
async def test_silent_connections_keep_nobody_out(
    store: DirectoryStore,
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
    caplog: pytest.LogCaptureFixture,
    first: bytes,
    with_tls: bool,
) -> None:
    """More of them than there are seats, each from before the one who uploads."""
    theirs, ours = tls if with_tls else (None, None)
    silent: list[socket.socket] = []
    async with serving(store, theirs, patience_s=60, most=16) as server:
        try:
            for _ in range(100):
                silent.append(socket.create_connection(("127.0.0.1", server.port)))
                silent[-1].sendall(first)
            answers = await asyncio.gather(*(put(store, server.port, ours) for _ in range(4)))
        finally:
            for connection in silent:
                connection.close()
    assert {answer.split()[1] for answer in answers} == {b"200"}
    assert len(caplog.records) <= 2


@pytest.mark.attack
@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "tls"])
async def test_who_says_nothing_is_cut_after_a_while(
    store: DirectoryStore, tls: tuple[ssl.SSLContext, ssl.SSLContext], with_tls: bool
) -> None:
    async with serving(store, tls[0] if with_tls else None, patience_s=0.3) as server:
        readers = [(await asyncio.open_connection("127.0.0.1", server.port)) for _ in range(5)]
        for number, (_, writer) in enumerate(readers):
            writer.write(b"PUT "[:number])
        for reader, writer in readers:
            async with asyncio.timeout(30):
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()


@pytest.mark.attack
async def test_a_body_that_trickles_ends_by_its_own_bound(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetprof_operator.hub.storage.uploads.STALLED_S", 0.2)
    async with serving(store, None, patience_s=60) as server, asyncio.timeout(30):
        assert (await put(store, server.port, body=BODY[:3])).split()[1] == b"408"


@pytest.mark.attack
@pytest.mark.parametrize(
    "first_bytes",
    [
        b"\x16\x03\x01\r\n\r\n",
        b"PUT /objects/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"PUT /objects/a HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10_000 + b"\r\n\r\n",
        b"PUT /objects/a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"PUT /objects/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
        b"PUT /objects/a HTTP/9.9.9\r\n\r\n",
    ],
    ids=["TLS", "no grant", "a long header", "a negative length", "a bad chunk", "a version"],
)
async def test_garbage_and_refused_grants_fill_no_log(
    store: DirectoryStore, caplog: pytest.LogCaptureFixture, first_bytes: bytes
) -> None:
    async with serving(store, None, patience_s=60) as server:
        for _ in range(50):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(first_bytes)
            assert (await reader.readline()).split()[1] in (b"400", b"403", b"405")
            writer.close()
    assert len(caplog.text) < 300, caplog.text[:2000]


async def test_without_descriptors_it_waits_for_some(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, [OSError(24, "too many open files")] * 3

    async def fail_first(place: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return await accept(place)

    monkeypatch.setattr(loop, "sock_accept", fail_first)
    async with serving(store, None, patience_s=60) as server:
        assert b"200" in await put(store, server.port)
    assert caplog.messages == ["uploads refused: 1 × no file descriptors left"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


ANOTHER_USER = """
import os, socket, sys
os.setgroups([]); os.setgid(12345); os.setuid(12345)
with socket.socket(socket.AF_UNIX) as tried:
    tried.connect(sys.argv[1])
    tried.settimeout(30)
    try:
        tried.sendall(b"PUT /objects/x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n")
        print(tried.recv(100))
    except ConnectionError:
        print(b"")
"""


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
async def test_another_users_process_is_not_heard(
    store: DirectoryStore, caplog: pytest.LogCaptureFixture, open_folder: Path
) -> None:
    """Even where folder and socket let it in."""
    path = f"{open_folder}/uploads.sock"
    place = socket.socket(socket.AF_UNIX)
    place.bind(path)
    os.chmod(path, 0o777)
    server = await serve_uploads(store, place)
    try:
        result = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", ANOTHER_USER, path], capture_output=True, text=True, timeout=60
        )
    finally:
        await server.close()
    assert (result.stdout, result.stderr) == ("b''\n", "")
    assert caplog.messages == ["uploads refused: 1 × another user's process"]


HOLDS_CONNECTIONS = """
import asyncio, re, socket, ssl, sys
from fleetprof_store.directory import DirectoryStore
from fleetprof_operator.hub.storage.uploads import serve_uploads

async def main():
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*sys.argv[2:])
    place = socket.create_server(("127.0.0.1", 0))
    server = await serve_uploads(DirectoryStore(sys.argv[1], b"s" * 32, ""), place, tls=tls)
    peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    before = peak()
    silent = []
    for _ in range(1100):
        silent.append(socket.create_connection(("127.0.0.1", server.port)))
        await asyncio.sleep(0)
    await asyncio.sleep(0.5)
    print(peak() - before >> 10)
    await server.close()

asyncio.run(main())
"""


@pytest.mark.attack
def test_silent_connections_take_little_memory(tmp_path: Path, tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """asyncio alone takes 330 MiB for as many, before a peer has said a word."""
    words: list[str | Path] = [
        sys.executable,
        "-c",
        HOLDS_CONNECTIONS,
        tmp_path / "store",
        tmp_path / "c.pem",
        tmp_path / "k.pem",
    ]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert int(result.stdout) < 128
