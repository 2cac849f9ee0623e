"""Which object store: what `--store` said, in a form that can be written down and handed to another process.

Guarantees: holds no credential (S3's come from boto3's own chain: environment, profile, instance role).
"""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from fleetprof_cli.messages import Failure

if TYPE_CHECKING:
    from fleetprof_api.store.base import Store


class StoreLocation(msgspec.Struct, kw_only=True, frozen=True):
    """A directory, or a bucket with an optional prefix and endpoint."""

    directory: str = ""
    bucket: str = ""
    prefix: str = ""
    endpoint: str = ""

    def text(self) -> str:
        """The address for people."""
        return self.directory or f"s3://{self.bucket}/{self.prefix}"


def parse_store(text: str, s3_endpoint: str) -> StoreLocation:
    """What `--store` and `--s3-endpoint` mean. Raises ValueError with the rule."""
    if not text.startswith("s3://"):
        if "://" in text:
            raise ValueError(f"{text!r} must be a directory or s3://bucket/prefix")
        if s3_endpoint:
            raise ValueError("--s3-endpoint needs --store s3://bucket/prefix")
        return StoreLocation(directory=str(Path(text).absolute()))
    parts = urlsplit(text)
    if not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{text!r} must be s3://bucket or s3://bucket/prefix")
    return StoreLocation(bucket=parts.netloc, prefix=parts.path.strip("/"), endpoint=s3_endpoint)


def open_store(location: StoreLocation, *, secret: bytes | None = None) -> "Store":
    """The store. `secret` signs the upload URLs of a directory; a reader needs none. Raises Failure."""
    from fleetprof_api.store.base import StoreError

    try:
        if location.directory:
            from fleetprof_api.store.directory import DirectoryStore

            return DirectoryStore(location.directory, secret or secrets.token_bytes(32), "")
        from fleetprof_api.store.s3 import S3Store

        return S3Store(location.bucket, location.prefix, location.endpoint or None)
    except (StoreError, ValueError) as error:
        raise Failure(f"cannot use the store {location.text()}: {error}", next_step="choose another: --store") from None
