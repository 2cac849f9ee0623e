"""The directory store's own: its files, its signatures, and the server that takes its PUTs."""

import hashlib
import os
import re
import socket
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from fleetprof_store.base import NotFound, StoreError, UploadPart
from fleetprof_store.directory import DirectoryStore
from fleetprof_store.signed_parts import URL_PATH, GrantRefused
from hypothesis import given
from hypothesis import strategies as st

SECRET = b"s" * 32
PART = UploadPart(5, hashlib.sha256(b"trace").digest())
KEY = "v1/team/uid/ranks/0/trace.json.gz"


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_objects_are_plain_files(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, SECRET, "http://127.0.0.1:1")
    store.put("v1/team/uid/report.json", b"{}")
    assert (tmp_path / "v1/team/uid/report.json").read_bytes() == b"{}"
    assert store.locate("v1/team/uid/report.json") == str(tmp_path / "v1/team/uid/report.json")
    assert files(tmp_path) == ["v1/team/uid/report.json"]
    store.delete(["v1/team/uid/report.json"])
    assert not (tmp_path / "v1").exists()


@pytest.mark.attack
def test_what_it_makes_is_for_its_user_alone(tmp_path: Path, served_directory: DirectoryStore) -> None:
    store = DirectoryStore(tmp_path / "new" / "store", SECRET, "http://h:1")
    before = os.umask(0)
    try:
        store.put("v1/team/uid/report.json", b"{}")
        grant = served_directory.grant_upload(KEY, [PART], lifetime_s=60)
        store.grant_upload(KEY, [PART], lifetime_s=60)
        with urllib3.PoolManager(retries=False) as http:
            etag = http.request("PUT", grant.parts[0].url, body=b"trace").headers["ETag"]
        served_directory.complete_upload(KEY, grant.upload_id, [PART], [etag])
    finally:
        os.umask(before)
    made = [*(tmp_path / "new").rglob("*"), tmp_path / "new", *served_directory.root.rglob("*")]
    assert len(made) > 12
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}


def test_a_root_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    DirectoryStore(tmp_path, SECRET, "")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path, SECRET, "")
    store.put("v1/a", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device; free some space") as caught:
        store.put("v1/a", b"new")
    assert caught.value.retryable
    assert store.get("v1/a") == b"old"
    assert files(tmp_path) == ["v1/a"]


def test_a_root_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=f"{tmp_path}/file/store"):
        DirectoryStore(tmp_path / "file" / "store", SECRET, "").prepare()


def test_reading_makes_nothing(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "new" / "store", SECRET, "")
    assert list(store.list("v1/")) == []
    with pytest.raises(NotFound):
        store.get("v1/a")
    assert not (tmp_path / "new").exists()


def test_a_key_below_an_object_is_an_error_and_no_crash(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, SECRET, "")
    store.put("v1/a", b"x")
    with pytest.raises(StoreError):
        store.put("v1/a/b", b"y")
    with pytest.raises(NotFound):
        store.get("v1/a/b")
    store.delete(["v1/a/b"])
    assert store.get("v1/a") == b"x"


def test_readers_never_see_half_an_object(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, SECRET, "")
    bodies = [bytes([65 + n]) * 300_000 for n in range(3)]
    store.put("v1/a", bodies[0])
    stop = threading.Event()
    bodies_read: set[bytes] = set()

    def read() -> None:
        while not stop.is_set():
            bodies_read.add(store.get("v1/a"))

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(60):
        store.put("v1/a", bodies[turn % 3])
    stop.set()
    reader.join()
    assert bodies_read <= set(bodies)


def test_the_secret_outlives_the_process(tmp_path: Path) -> None:
    grant = DirectoryStore(tmp_path, SECRET, "http://h:1").grant_upload(KEY, [PART], lifetime_s=60)
    again = DirectoryStore(tmp_path, SECRET, "http://h:1")
    part = again.check_grant(KEY, query_of(grant.parts[0].url))
    assert (part.key, part.number, part.size_bytes, part.sha256) == (KEY, 1, 5, PART.sha256)
    other = DirectoryStore(tmp_path, b"t" * 32, "http://h:1")
    with pytest.raises(GrantRefused, match="signature"):
        other.check_grant(KEY, query_of(grant.parts[0].url))


CHANGES = {
    "upload": "0" * 32,
    "part": "2",
    "size": "6",
    "sha256": "00" * 32,
    "expires": "99999999999",
    "signature": "x",
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_of_a_grant_is_signed(tmp_path: Path, field: str) -> None:
    store = DirectoryStore(tmp_path, SECRET, "http://h:1")
    query = query_of(store.grant_upload(KEY, [PART], lifetime_s=60).parts[0].url)
    assert store.check_grant(KEY, query).size_bytes == 5
    for changed in (query | {field: CHANGES[field]}, {name: value for name, value in query.items() if name != field}):
        with pytest.raises(GrantRefused):
            store.check_grant(KEY, changed)
    with pytest.raises(GrantRefused):
        store.check_grant(KEY + "x", query)


@given(query=st.dictionaries(st.sampled_from([*CHANGES, "other"]), st.text(max_size=40)))
def test_no_query_is_taken_for_a_grant(tmp_path_factory: pytest.TempPathFactory, query: dict[str, str]) -> None:
    store = DirectoryStore(tmp_path_factory.getbasetemp() / "fuzzed", SECRET, "http://h:1")
    with pytest.raises(GrantRefused):
        store.check_grant(KEY, query)


def test_a_grant_expires_by_the_stores_clock(tmp_path: Path) -> None:
    now = 1_000 * 10**9
    store = DirectoryStore(tmp_path, SECRET, "http://h:1", clock=lambda: now)
    grant = store.grant_upload(KEY, [PART], lifetime_s=60)
    assert grant.expires_unix_ns == 1_060 * 10**9
    now = 1_059 * 10**9
    store.check_grant(KEY, query_of(grant.parts[0].url))
    now = 1_060 * 10**9
    with pytest.raises(GrantRefused, match="has expired; ask for a new one"):
        store.check_grant(KEY, query_of(grant.parts[0].url))


def test_unfinished_uploads_are_dropped_after_a_day(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, SECRET, "http://h:1")
    old = store.grant_upload(KEY, [PART], lifetime_s=60)
    folder = tmp_path / ".uploads" / old.upload_id
    os.utime(folder, (time.time() - 90_000,) * 2)
    recent = store.grant_upload(KEY, [PART], lifetime_s=60)
    assert [path.name for path in (tmp_path / ".uploads").iterdir()] == [recent.upload_id]


def test_an_upload_id_cannot_leave_the_folder(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store", SECRET, "http://h:1")
    precious = tmp_path / "precious"
    precious.mkdir()
    for upload_id in ("../../precious", "..", "", "/", "g" * 32, "0" * 31):
        with pytest.raises(StoreError, match="not the id of an upload"):
            store.abort_upload(KEY, upload_id)
        with pytest.raises(StoreError, match="not the id of an upload"):
            store.complete_upload(KEY, upload_id, [PART], ["x"])
    assert precious.is_dir()


def test_without_a_server_nothing_can_be_granted_yet(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no process serves uploads yet") as caught:
        DirectoryStore(tmp_path, SECRET, "").grant_upload(KEY, [PART], lifetime_s=60)
    assert caught.value.retryable


# ---------------------------------------------------------------- over HTTP


@pytest.fixture
def http() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(retries=False) as pool:
        yield pool


def _request(http: urllib3.PoolManager, method: str, url: str, body: object, **headers: str) -> tuple[int, str]:
    answer = http.request(method, url, body=body, headers=headers)  # type: ignore[arg-type]
    return answer.status, answer.data.decode()


def test_the_server_says_what_is_wrong(served_directory: DirectoryStore, http: urllib3.PoolManager) -> None:
    grant = served_directory.grant_upload(KEY, [PART], lifetime_s=60)
    url = grant.parts[0].url
    bare = url.partition("?")[0]

    def chunks() -> object:
        yield b"trace"

    assert _request(http, "PUT", bare, b"trace") == (403, "this is no pre-signed URL of ours\n")
    assert _request(http, "PUT", url[:-1] + ("0" if url[-1] != "0" else "1"), b"trace")[0] == 403
    assert _request(http, "PUT", url, chunks()) == (411, "Content-Length is required\n")
    assert _request(http, "PUT", url, b"trac") == (400, "Content-Length is 4, 5 bytes were granted\n")
    assert _request(http, "PUT", url, b"tracX") == (400, "the bytes do not have the granted SHA-256\n")
    assert _request(http, "GET", url, None)[0] == 405
    assert _request(http, "PUT", url.replace(URL_PATH, "/elsewhere/"), b"trace")[0] == 404
    traversal = bare.replace(KEY, "%2e%2e/%2e%2e/x")
    assert _request(http, "PUT", traversal, b"trace")[0] in (403, 404)
    assert [name for name in files(served_directory.root) if not name.endswith("/key")] == []
    assert _request(http, "PUT", url, b"trace")[0] == 200
    served_directory.abort_upload(KEY, grant.upload_id)
    assert _request(http, "PUT", url, b"trace") == (
        403,
        "this upload was completed or aborted; ask for a new pre-signed URL\n",
    )


def test_a_connection_that_breaks_leaves_nothing(served_directory: DirectoryStore) -> None:
    grant = served_directory.grant_upload(KEY, [PART], lifetime_s=60)
    where = urlsplit(grant.parts[0].url)
    assert where.hostname is not None
    with socket.create_connection((where.hostname, where.port or 0)) as raw:
        raw.sendall(f"PUT {where.path}?{where.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\ntr".encode())
        folder = served_directory.root / ".uploads" / grant.upload_id
        until = time.monotonic() + 10
        while not list(folder.glob("*.tmp")) and time.monotonic() < until:
            time.sleep(0.01)
        assert list(folder.glob("*.tmp"))
    until = time.monotonic() + 10
    while list(folder.glob("*.tmp")) and time.monotonic() < until:
        time.sleep(0.01)
    assert [path.name for path in folder.iterdir()] == ["key"]


def test_a_full_disk_asks_for_patience(
    served_directory: DirectoryStore, http: urllib3.PoolManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = served_directory.grant_upload(KEY, [PART], lifetime_s=60)

    def full(self: object, *_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        status, message = _request(http, "PUT", grant.parts[0].url, b"trace")
    assert status == 503
    assert re.search("No space left on device; free some space", message)
    assert _request(http, "PUT", grant.parts[0].url, b"trace")[0] == 200


def test_many_parts_at_once(served_directory: DirectoryStore) -> None:
    keys = [KEY.replace("ranks/0", f"ranks/{rank}") for rank in range(8)]
    urls = [served_directory.grant_upload(key, [PART], lifetime_s=60).parts[0].url for key in keys]

    def put(url: str) -> int:
        with urllib3.PoolManager(retries=False) as pool:
            return pool.request("PUT", url, body=b"trace").status

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(put, urls)) == [200] * 8
