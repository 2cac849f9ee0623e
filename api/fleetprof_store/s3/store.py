"""The object store in S3 or anything that speaks its protocol.

Guarantees beyond `base`: parts are presigned with their Content-Length and x-amz-checksum-sha256 among the signed
headers, so the server itself refuses other bytes; completion names each part's checksum again; errors say what to do.
Credentials come from boto3's chain (environment, profile, IRSA, instance role) and never leave this process.
Source: Amazon S3 API reference, UploadPart and CompleteMultipartUpload.
"""

import base64
import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import IO, TYPE_CHECKING, Final

import boto3
import botocore.exceptions
from botocore.config import Config

from fleetprof_store.base import Grant, ObjectInfo, PartGrant, StoreError, UploadPart
from fleetprof_store.checks import check_key, check_parts, find_write_problem
from fleetprof_store.response_body import open_body
from fleetprof_store.s3.errors import ABSENT, TRANSIENT, S3Errors, code_of

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, ObjectIdentifierTypeDef

_DELETE_AT_ONCE: Final = 1000  # S3's limit for DeleteObjects


class S3Store:
    """Objects in a bucket, below an optional prefix.

    `endpoint_url` is for stores that are not Amazon's; `path_style` puts the bucket into the path instead of the host
    name, as most of those need (default: when an endpoint is given). The bucket must exist. `session` replaces boto3's
    default chain of credentials. `patience_s` bounds each attempt of a connection.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        endpoint_url: str | None = None,
        *,
        path_style: bool | None = None,
        region: str | None = None,
        session: boto3.Session | None = None,
        patience_s: int = 5,
    ) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        if self._prefix:
            check_key(self._prefix[:-1])
        self._where = f"bucket {bucket!r} at {endpoint_url or 'Amazon S3'}"
        self._errors = S3Errors(self._where)
        use_path_style = endpoint_url is not None if path_style is None else path_style
        # 0.4 ms of Python each: several threads that sign at once would hold up everybody else in the process.
        self._signing = threading.Lock()
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path" if use_path_style else "virtual"},
            connect_timeout=patience_s,
            read_timeout=6 * patience_s,
            retries={"mode": "standard", "total_max_attempts": 2},
            # Only what we ask for: older stores know no default checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            max_pool_connections=32,
        )
        chosen = session or boto3.Session()
        with self._errors.explained():
            # A region must be signed; endpoints other than Amazon's ignore which.
            self._client = chosen.client(
                "s3", endpoint_url=endpoint_url, region_name=region or chosen.region_name or "us-east-1", config=config
            )

    def put(self, key: str, data: bytes) -> None:
        """Writes a small object, replacing what is there."""
        with self._errors.explained():
            self._client.put_object(Bucket=self._bucket, Key=self._key(key), Body=data)

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises NotFound."""
        with self.open(key) as body, self._errors.explained(key):
            return body.read()

    def open(self, key: str) -> IO[bytes]:
        """Opens an object for streaming reads. Raises NotFound; reads raise StoreError."""
        with self._errors.explained(key):
            answer = self._client.get_object(Bucket=self._bucket, Key=self._key(key))
        return open_body(answer["Body"], self._errors.explained)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Reads a part of an object. Raises NotFound."""
        if length <= 0:
            return b""
        with self._errors.explained(key):
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=self._key(key), Range=f"bytes={start}-{start + length - 1}"
                )
            except botocore.exceptions.ClientError as error:
                if code_of(error) == "InvalidRange":  # it ends before
                    return b""
                raise
            with closing(answer["Body"]) as body:
                return body.read()

    def head(self, key: str) -> ObjectInfo:
        """One object as it would be listed. Raises NotFound."""
        with self._errors.explained(key):
            answer = self._client.head_object(Bucket=self._bucket, Key=self._key(key))
        return ObjectInfo(key, answer["ContentLength"], answer["ETag"].strip('"'))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects below a prefix, in key order, a page at a time."""
        with self._errors.explained():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            for page in pages:
                for item in page.get("Contents", []):
                    yield ObjectInfo(item["Key"][len(self._prefix) :], item["Size"], item["ETag"].strip('"'))

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects; absent ones are no error."""
        for at in range(0, len(keys), _DELETE_AT_ONCE):
            names: list[ObjectIdentifierTypeDef] = [{"Key": self._key(key)} for key in keys[at : at + _DELETE_AT_ONCE]]
            with self._errors.explained():
                answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": names, "Quiet": True})
            failed = [error for error in answer.get("Errors", []) if error.get("Code") not in ABSENT]
            if failed:
                first = failed[0]
                raise StoreError(
                    f"{self._where}: {len(failed)} objects could not be deleted, the first is {first.get('Key')!r}: "
                    f"{first.get('Code')}",
                    retryable=first.get("Code") in TRANSIENT,
                )

    def locate(self, key: str) -> str:
        """The object's s3:// URL."""
        return f"s3://{self._bucket}/{self._key(key)}"

    def grant_upload(self, key: str, parts: Sequence[UploadPart], *, lifetime_s: int) -> Grant:
        """Begins a multipart upload and presigns one PUT per part."""
        name = self._key(key)
        check_parts(parts)
        # Counted from before the first signature, so that no URL expires earlier than said.
        expires = time.time_ns() + lifetime_s * 1_000_000_000
        with self._errors.explained():
            begun = self._client.create_multipart_upload(Bucket=self._bucket, Key=name, ChecksumAlgorithm="SHA256")
            upload_id = begun["UploadId"]
            grants = []
            for number, part in enumerate(parts, 1):
                checksum = base64.b64encode(part.sha256).decode()
                place = {"Bucket": self._bucket, "Key": name, "UploadId": upload_id, "PartNumber": number}
                what = {"ContentLength": part.size_bytes, "ChecksumSHA256": checksum}
                with self._signing:
                    url = self._client.generate_presigned_url(
                        "upload_part", Params={**place, **what}, ExpiresIn=lifetime_s
                    )
                headers = {"Content-Length": str(part.size_bytes), "x-amz-checksum-sha256": checksum}
                grants.append(PartGrant(url, headers))
        return Grant(upload_id, grants, expires)

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> None:
        """Joins the parts into the object; repeating it is no error."""
        name = self._key(key)
        check_parts(parts)
        if len(etags) != len(parts):
            raise StoreError(f"{len(parts)} parts of {key!r} need as many ETags, got {len(etags)}", retryable=False)
        named: list[CompletedPartTypeDef] = [
            {"PartNumber": number, "ETag": etag, "ChecksumSHA256": base64.b64encode(part.sha256).decode()}
            for number, (part, etag) in enumerate(zip(parts, etags, strict=True), 1)
        ]
        with self._errors.explained():
            try:
                self._client.complete_multipart_upload(
                    Bucket=self._bucket, Key=name, UploadId=upload_id, MultipartUpload={"Parts": named}
                )
            except botocore.exceptions.ClientError as error:
                code = code_of(error)
                if code == "NoSuchUpload" and self._holds(name, parts, etags):
                    return
                if code in ("NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall", "BadDigest"):
                    message = f"{self._where}: the parts of {key!r} are not as announced ({code}); begin again"
                    raise StoreError(message, retryable=False) from None
                raise

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Drops an unfinished upload; an unknown one is no error."""
        with self._errors.explained():
            try:
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=self._key(key), UploadId=upload_id)
            except botocore.exceptions.ClientError as error:
                if code_of(error) != "NoSuchUpload":
                    raise

    def sign_read(self, key: str, *, lifetime_s: int, saved_as: str = "") -> PartGrant:
        """A presigned GET of one object."""
        parameters = {"Bucket": self._bucket, "Key": self._key(key)}
        if saved_as:
            parameters["ResponseContentDisposition"] = f'attachment; filename="{saved_as}"'
        with self._errors.explained():
            return PartGrant(self._client.generate_presigned_url("get_object", parameters, lifetime_s))

    def sign_write(self, key: str, data: UploadPart, *, lifetime_s: int) -> PartGrant:
        """A presigned PUT of one object, with length and checksum among the signed headers."""
        name, problem = self._key(key), find_write_problem(data)
        if problem:
            raise StoreError(problem, retryable=False)
        checksum = base64.b64encode(data.sha256).decode()
        parameters = {
            "Bucket": self._bucket,
            "Key": name,
            "ContentLength": data.size_bytes,
            "ChecksumSHA256": checksum,
        }
        with self._errors.explained():
            url = self._client.generate_presigned_url("put_object", parameters, lifetime_s)
        return PartGrant(url, {"Content-Length": str(data.size_bytes), "x-amz-checksum-sha256": checksum})

    def _key(self, key: str) -> str:
        return self._prefix + check_key(key)

    def _holds(self, name: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> bool:
        try:
            head = self._client.head_object(Bucket=self._bucket, Key=name, ChecksumMode="ENABLED")
        except botocore.exceptions.ClientError as error:
            if code_of(error) in ABSENT:
                return False
            raise
        if head["ContentLength"] != sum(part.size_bytes for part in parts):
            return False
        if checksum := head.get("ChecksumSHA256"):
            composite = base64.b64encode(hashlib.sha256(b"".join(part.sha256 for part in parts)).digest()).decode()
            return checksum.partition("-")[0] == composite
        # A store that keeps no checksums: its multipart ETag is the MD5 of its parts' MD5s.
        digests = b"".join(bytes.fromhex(etag.strip('"')) for etag in etags)
        return head["ETag"].strip('"') == f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(etags)}"
