"""Addresses of one object, for somebody without a credential: what each reaches, and nothing else."""

import hashlib
import time
from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from fleetprof_store.base import NotFound, PartGrant, SigningStore, StoreError, UploadPart
from fleetprof_store.directory import DirectoryStore
from harness.memory_store import MemoryStore

KEY = "v1/team/a/report.json"
Send = Callable[[PartGrant, bytes | None], tuple[int, bytes]]


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryStore()
    server = request.getfixturevalue("s3_server")
    return server.make_store(server.make_bucket(), "some/prefix")


@pytest.fixture
def send(store: Any) -> Any:
    """GETs (no data) or PUTs what an address says; (status, body)."""

    def in_memory(grant: PartGrant, data: bytes | None) -> tuple[int, bytes]:
        try:
            if data is None:
                return 200, store.fetch(grant.url)
            store.write(grant.url, data)
        except NotFound:
            return 404, b""
        except StoreError:
            return 403, b""
        return 200, b""

    if isinstance(store, MemoryStore):
        yield in_memory
        return
    with urllib3.PoolManager(retries=False, timeout=10) as http:

        def over_http(grant: PartGrant, data: bytes | None) -> tuple[int, bytes]:
            if data is None:
                answer = http.request("GET", grant.url)
            else:
                given = dict(grant.headers) | {"Content-Length": str(len(data))}
                answer = http.request("PUT", grant.url, body=data, headers=given)
            return answer.status, answer.data

        yield over_http


def announce(data: bytes) -> UploadPart:
    return UploadPart(len(data), hashlib.sha256(data).digest())


def test_an_address_reads_its_object(store: Any, send: Send) -> None:
    store.put(KEY, b"{}")
    assert isinstance(store, SigningStore)
    assert send(store.sign_read(KEY, lifetime_s=60), None) == (200, b"{}")
    assert send(store.sign_read(KEY + ".none", lifetime_s=60), None)[0] == 404


def test_a_browser_saves_what_it_reads_under_the_name_that_was_signed(store: Any) -> None:
    if isinstance(store, MemoryStore):
        return  # its addresses are for no browser
    store.put(KEY, b"{}")
    address = store.sign_read(KEY, lifetime_s=60, saved_as="slow-rank2-trace.json.gz").url
    with urllib3.PoolManager(retries=False, timeout=10) as http:
        answered = http.request("GET", address)
        assert answered.headers["Content-Disposition"] == 'attachment; filename="slow-rank2-trace.json.gz"'
        assert http.request("GET", address.replace("slow-rank2", "other")).status == 403


@pytest.mark.parametrize("data", [b"{}", b"", bytes(1 << 20)])
def test_an_address_writes_its_object_over_what_is_there(store: Any, send: Send, data: bytes) -> None:
    store.put(KEY, b"before")
    assert send(store.sign_write(KEY, announce(data), lifetime_s=60), data)[0] == 200
    assert store.get(KEY) == data


@pytest.mark.attack
@pytest.mark.parametrize("other", [b"eval", b"go", b"longer"])
def test_an_address_writes_no_other_bytes(store: Any, send: Send, other: bytes) -> None:
    store.put(KEY, b"before")
    assert 400 <= send(store.sign_write(KEY, announce(b"good"), lifetime_s=60), other)[0] < 500
    assert store.get(KEY) == b"before"


@pytest.mark.attack
def test_an_address_is_for_one_verb_and_one_object(store: Any, send: Send) -> None:
    store.put(KEY, b"mine")
    store.put("v1/team/b/report.json", b"theirs")
    read, write = store.sign_read(KEY, lifetime_s=60), store.sign_write(KEY, announce(b"good"), lifetime_s=60)
    assert 400 <= send(PartGrant(read.url, write.headers), b"good")[0] < 500
    assert send(PartGrant(write.url), None)[0] == 403
    for grant, data in ((read, None), (write, b"good")):
        moved = PartGrant(grant.url.replace("/team/a/", "/team/b/"), grant.headers)
        if moved.url != grant.url:  # memory:// addresses hold no key
            assert send(moved, data)[0] == 403
        listing = PartGrant(grant.url.replace("/some/prefix/" + KEY, "") + "&list-type=2", grant.headers)
        if listing.url.partition("?")[0] != grant.url.partition("?")[0]:
            assert send(listing, None)[0] == 403
    assert (store.get(KEY), store.get("v1/team/b/report.json")) == (b"mine", b"theirs")


@pytest.mark.attack
def test_an_address_expires(store: Any, send: Send) -> None:
    store.put(KEY, b"{}")
    address = store.sign_read(KEY, lifetime_s=1)
    until = time.time_ns() + 2_100_000_000  # S3 counts whole seconds
    while time.time_ns() < until:
        time.sleep(0.05)
    assert send(address, None)[0] == 403


@pytest.mark.parametrize("size", [-1, (512 << 20) + 1])
def test_impossible_sizes_are_refused(store: Any, size: int) -> None:
    with pytest.raises(StoreError, match="0 to 536870912 bytes"):
        store.sign_write(KEY, UploadPart(size, bytes(32)), lifetime_s=60)
    with pytest.raises(StoreError, match="SHA-256"):
        store.sign_write(KEY, UploadPart(1, b""), lifetime_s=60)


def test_keys_cannot_leave_the_store(store: Any) -> None:
    for key in ("../x", "v1/../x", "/etc/passwd"):
        with pytest.raises(StoreError, match="is not usable"):
            store.sign_read(key, lifetime_s=60)
        with pytest.raises(StoreError, match="is not usable"):
            store.sign_write(key, announce(b""), lifetime_s=60)


def test_a_directory_signs_none(tmp_path: Any) -> None:
    """An analysis there reads the files."""
    assert not isinstance(DirectoryStore(tmp_path, b"s" * 32, ""), SigningStore)
