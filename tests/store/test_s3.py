"""S3's own: errors that say what to do, prefixes, and a server that goes away and comes back."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import boto3
import pytest
import urllib3
from fleetprof_store.base import NotFound, Store, StoreError, UploadPart
from fleetprof_store.s3.store import S3Store

pytestmark = pytest.mark.s3

READS_AND_WRITES: list[Callable[[Store], object]] = [
    lambda store: store.put("v1/a/b", b"x"),
    lambda store: store.get("v1/a/b"),
    lambda store: list(store.list("v1/")),
    lambda store: store.delete(["v1/a/b"]),
    lambda store: store.grant_upload("v1/a/b", [UploadPart(1, bytes(32))], lifetime_s=60),
    lambda store: store.abort_upload("v1/a/b", "00000000-0000-0000-0000-000000000000"),
]


@pytest.mark.parametrize("call", READS_AND_WRITES[:5])
def test_wrong_credentials(s3_server: Any, call: Callable[[Store], object]) -> None:
    store = s3_server.make_store(s3_server.make_bucket(), secret_key="wrong")
    with pytest.raises(StoreError, match=r"refuses these credentials.*check the access key") as caught:
        call(store)
    assert not caught.value.retryable
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("call", READS_AND_WRITES[:5])
def test_missing_bucket(s3_server: Any, call: Callable[[Store], object]) -> None:
    with pytest.raises(StoreError, match=r"bucket 'nobody-made-it' at .* does not exist; create it") as caught:
        call(s3_server.make_store("nobody-made-it"))
    assert not caught.value.retryable
    assert not isinstance(caught.value, NotFound)


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, s3_server: Any) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    store = S3Store("bucket", endpoint_url=s3_server.endpoint_url, session=boto3.Session())
    with pytest.raises(StoreError, match=r"no credentials.*set AWS_ACCESS_KEY_ID") as caught:
        store.put("v1/a/b", b"x")
    assert not caught.value.retryable


def test_server_down_then_up(s3_server: Any) -> None:
    store = s3_server.make_store(s3_server.make_bucket())
    store.put("v1/a/b", b"before")
    part = UploadPart(5, hashlib.sha256(b"trace").digest())
    grant = store.grant_upload("v1/a/trace", [part], lifetime_s=60)
    s3_server.stop()
    try:
        for call in READS_AND_WRITES:
            with pytest.raises(StoreError, match="cannot be reached") as caught:
                call(store)
            assert caught.value.retryable
    finally:
        s3_server.start()
    assert store.get("v1/a/b") == b"before"
    with urllib3.PoolManager(retries=False) as http:  # a grant from before still holds
        etag = http.request("PUT", grant.parts[0].url, body=b"trace", headers=grant.parts[0].headers).headers["etag"]
    store.complete_upload("v1/a/trace", grant.upload_id, [part], [etag])
    assert store.get("v1/a/trace") == b"trace"


def test_a_prefix_keeps_to_itself(s3_server: Any) -> None:
    bucket = s3_server.make_bucket()
    ours, theirs = s3_server.make_store(bucket, "team/a/"), s3_server.make_store(bucket, "team/ab")
    ours.put("v1/x", b"ours")
    theirs.put("v1/x", b"theirs!")
    assert [(info.key, info.size_bytes) for info in ours.list("v1/")] == [("v1/x", 4)]
    assert ours.locate("v1/x") == f"s3://{bucket}/team/a/v1/x"
    assert theirs.get("v1/x") == b"theirs!"


def test_headers_of_a_grant_are_signed(s3_server: Any) -> None:
    store = s3_server.make_store(s3_server.make_bucket())
    grant = store.grant_upload("v1/a/b", [UploadPart(5, hashlib.sha256(b"trace").digest())], lifetime_s=60)
    assert "X-Amz-SignedHeaders=content-length%3Bhost%3Bx-amz-checksum-sha256" in grant.parts[0].url
    with urllib3.PoolManager(retries=False) as http:
        assert http.request("PUT", grant.parts[0].url, body=b"trace").status == 403  # without the checksum


def test_the_seam_imports_no_boto3() -> None:
    code = (
        "import sys, fleetprof_store.base, fleetprof_store.directory;"
        "assert not {'boto3', 'botocore', 'aiohttp'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
