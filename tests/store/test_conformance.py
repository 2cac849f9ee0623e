"""The promises of every store, held against all of them: memory, directory (over real HTTP), S3 (a real server)."""

import base64
import hashlib
import re
import time
from collections.abc import Callable

import pytest
from fleetprof_store.base import NotFound, PartGrant, Store, StoreError, UploadPart

MIB = 1 << 20
KEY = "v1/default/some-uid/ranks/0/trace.json.gz"


def announce(*parts: bytes) -> list[UploadPart]:
    return [UploadPart(len(part), hashlib.sha256(part).digest()) for part in parts]


def test_writes_and_reads_back(store: Store) -> None:
    store.put("v1/a/b/request.json", b"{}")
    store.put("v1/a/b/request.json", b'{"again": true}')
    assert store.get("v1/a/b/request.json") == b'{"again": true}'
    with store.open("v1/a/b/request.json") as file:
        assert file.read(3) == b'{"a'
        assert file.read() == b'gain": true}'


def test_streams_a_large_object(store: Store) -> None:
    data = bytes(range(256)) * (3 * MIB // 256)
    store.put("v1/a/b/large", data)
    with store.open("v1/a/b/large") as file:
        chunks = list(iter(lambda: file.read(100_001), b""))
    assert b"".join(chunks) == data


def test_absent_objects(store: Store) -> None:
    store.put("v1/a/b/c", b"")
    for read in (store.get, store.open):
        for key in ("v1/a/b/none", "v1/none/b", "v1/a"):
            with pytest.raises(NotFound, match=re.escape(key)) as caught:
                read(key)
            assert not caught.value.retryable


def test_lists_in_key_order_below_a_prefix(store: Store) -> None:
    for key in ("v1/n/b/ranks/10/x", "v1/n/a/ledger.json", "v1/n/b/ranks/2/x", "v1/other/z", "v1/n/ab/y"):
        store.put(key, key.encode())
    everything = [(info.key, info.size_bytes) for info in store.list("v1/")]
    assert everything == sorted((key, len(key)) for key, _ in everything)
    assert len(everything) == 5
    assert [info.key for info in store.list("v1/n/b/")] == ["v1/n/b/ranks/10/x", "v1/n/b/ranks/2/x"]
    assert [info.key for info in store.list("v1/n/a")] == ["v1/n/a/ledger.json", "v1/n/ab/y"]
    assert list(store.list("v1/nobody/")) == []


def test_deletes(store: Store) -> None:
    store.put("v1/a/b", b"1")
    store.put("v1/a/c", b"2")
    store.delete(["v1/a/b", "v1/a/never"])
    store.delete([])
    assert [info.key for info in store.list("v1/")] == ["v1/a/c"]


@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../x", "v1/../x", "v1/..", "v1//x", "v1/x/", ".uploads/x", "v1/.hidden", "v1/a b", "v1/\x00",
     "v1/ü", "v1/a\n", "v1/" + "x" * 300, "v1/" + "x/" * 600 + "x", "v1/a..b", "v1/%2e%2e/x"],
)  # fmt: skip
def test_refuses_keys_that_could_leave_the_store(store: Store, key: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.put(key, b"x"),
        lambda: store.get(key),
        lambda: store.open(key),
        lambda: store.delete([key]),
        lambda: store.locate(key),
        lambda: store.grant_upload(key, announce(b"x"), lifetime_s=60),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="is not usable"):
            call()


def test_uploads_one_part(store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]) -> None:
    parts = announce(b"trace")
    before = time.time_ns()
    grant = store.grant_upload(KEY, parts, lifetime_s=60)
    assert before + 58_000_000_000 < grant.expires_unix_ns < time.time_ns() + 61_000_000_000
    with pytest.raises(NotFound):
        store.get(KEY)
    status, etag = put_part(grant.parts[0], b"trace")
    assert status == 200
    with pytest.raises(NotFound):  # never half-written: not before it is completed
        store.get(KEY)
    store.complete_upload(KEY, grant.upload_id, parts, [etag])
    assert store.get(KEY) == b"trace"
    store.complete_upload(KEY, grant.upload_id, parts, [etag])
    assert [info.key for info in store.list("v1/")] == [KEY]


def test_uploads_a_large_object_in_parts(store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]) -> None:
    pieces = [bytes([65 + number]) * (5 * MIB) for number in range(3)] + [b"tail"]
    parts = announce(*pieces)
    grant = store.grant_upload(KEY, parts, lifetime_s=60)
    etags = [""] * 4
    for at in (2, 0, 3, 1):  # in any order
        status, etags[at] = put_part(grant.parts[at], pieces[at])
        assert status == 200
    assert put_part(grant.parts[1], pieces[1])[0] == 200  # repeating a part is no error
    store.complete_upload(KEY, grant.upload_id, parts, etags)
    with store.open(KEY) as file:
        assert hashlib.sha256(file.read()).hexdigest() == hashlib.sha256(b"".join(pieces)).hexdigest()
    assert [info.size_bytes for info in store.list(KEY)] == [15 * MIB + 4]


def test_a_new_upload_replaces_the_object(
    store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]
) -> None:
    for data in (b"first", b"second"):
        grant = store.grant_upload(KEY, announce(data), lifetime_s=60)
        _, etag = put_part(grant.parts[0], data)
        store.complete_upload(KEY, grant.upload_id, announce(data), [etag])
        assert store.get(KEY) == data


@pytest.mark.parametrize(
    ("data", "why"), [(b"tracX", "checksum"), (b"trac", "shorter"), (b"traces", "longer"), (b"", "empty")]
)
def test_the_store_itself_refuses_other_bytes(
    store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]], data: bytes, why: str
) -> None:
    grant = store.grant_upload(KEY, announce(b"trace"), lifetime_s=60)
    status, _ = put_part(grant.parts[0], data)
    assert 400 <= status < 500, why
    with pytest.raises(StoreError) as caught:
        store.complete_upload(KEY, grant.upload_id, announce(b"trace"), ["ab" * 16])
    assert not caught.value.retryable
    status, etag = put_part(grant.parts[0], b"trace")  # the right bytes still go
    assert status == 200
    store.complete_upload(KEY, grant.upload_id, announce(b"trace"), [etag])
    assert store.get(KEY) == b"trace"


def test_a_grant_reaches_one_key_only(store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]) -> None:
    grant = store.grant_upload(KEY, announce(b"trace"), lifetime_s=60)
    other = KEY.replace("ranks/0", "ranks/1")
    moved = PartGrant(grant.parts[0].url.replace("ranks/0", "ranks/1"), grant.parts[0].headers)
    if moved.url != grant.parts[0].url:  # memory:// URLs hold no key
        assert put_part(moved, b"trace")[0] == 403
    _, etag = put_part(grant.parts[0], b"trace")
    with pytest.raises(StoreError):
        store.complete_upload(other, grant.upload_id, announce(b"trace"), [etag])
    assert list(store.list("v1/")) == []


def test_a_grant_expires(store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]) -> None:
    grant = store.grant_upload(KEY, announce(b"trace"), lifetime_s=1)
    while time.time_ns() < grant.expires_unix_ns + 1_100_000_000:  # S3 counts whole seconds
        time.sleep(0.05)
    assert put_part(grant.parts[0], b"trace")[0] == 403


def test_completing_checks_every_part(store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]) -> None:
    first, last = b"a" * (5 * MIB), b"z"
    parts = announce(first, last)
    grant = store.grant_upload(KEY, parts, lifetime_s=60)
    _, etag = put_part(grant.parts[0], first)
    for etags in ([etag, etag], [etag], []):
        with pytest.raises(StoreError) as caught:
            store.complete_upload(KEY, grant.upload_id, parts, etags)
        assert not caught.value.retryable
    with pytest.raises(NotFound):
        store.get(KEY)


def test_an_aborted_upload_is_gone(store: Store, put_part: Callable[[PartGrant, bytes], tuple[int, str]]) -> None:
    grant = store.grant_upload(KEY, announce(b"trace"), lifetime_s=60)
    _, etag = put_part(grant.parts[0], b"trace")
    store.abort_upload(KEY, grant.upload_id)
    store.abort_upload(KEY, grant.upload_id)
    assert 400 <= put_part(grant.parts[0], b"trace")[0] < 500
    with pytest.raises(StoreError):
        store.complete_upload(KEY, grant.upload_id, announce(b"trace"), [etag])


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([], "1 to 10000 parts"),
        ([UploadPart(0, bytes(32))], "part 1 of 1 must be 1 to"),
        ([UploadPart(-1, bytes(32))], "part 1 of 1 must be 1 to"),
        ([UploadPart(1 << 40, bytes(32))], "part 1 of 1 must be 1 to"),
        ([UploadPart(1, bytes(32)), UploadPart(1, bytes(32))], "part 1 of 2 must be 5242880 to"),
        ([UploadPart(1, b"short")], "SHA-256 of 32 bytes"),
        ([UploadPart(5 * MIB, bytes(32))] * 10_001, "1 to 10000 parts"),
    ],
)
def test_refuses_uploads_of_impossible_parts(store: Store, parts: list[UploadPart], says: str) -> None:
    with pytest.raises(StoreError, match=says):
        store.grant_upload(KEY, parts, lifetime_s=60)


def test_addresses_are_for_people_and_never_signed(store: Store) -> None:
    address = store.locate(KEY)
    assert address.endswith(KEY)
    assert "?" not in address
    assert base64.b64encode(b"secret").decode() not in address


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 3, b"abc"), (4, 2, b"ef"), (4, 100, b"efghij"), (9, 1, b"j"), (10, 5, b""), (99, 5, b""), (3, 0, b"")],
)
def test_reads_a_part_of_an_object(store: Store, start: int, length: int, expected: bytes) -> None:
    store.put("v1/a/b/c", b"abcdefghij")
    assert store.read_range("v1/a/b/c", start, length) == expected


def test_tells_of_one_object_what_a_list_tells(store: Store) -> None:
    store.put("v1/a/b/c", b"12345")
    store.put("v1/a/b/cc", b"1")
    (listed, _) = store.list("v1/a/b/c")
    assert store.head("v1/a/b/c") == listed
    assert listed.size_bytes == 5


def test_a_replaced_object_has_another_version(store: Store) -> None:
    versions = set()
    for data in (b"1", b"2", b"3"):
        store.put("v1/a/b/c", data)
        versions.add(store.head("v1/a/b/c").version)
    assert len(versions) == 3
    assert store.head("v1/a/b/c").version in versions


def test_absent_objects_have_neither_parts_nor_versions(store: Store) -> None:
    store.put("v1/a/b/c", b"1")
    for key in ("v1/a/b/none", "v1/a/b"):
        with pytest.raises(NotFound):
            store.head(key)
        with pytest.raises(NotFound):
            store.read_range(key, 0, 1)
