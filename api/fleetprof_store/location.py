"""The place of an object store: one line of text, in a form that can be written down and handed to another process.

    /var/lib/fleetprof/store
    s3://bucket/prefix?endpoint=https://minio.example:9000&path_style=true&region=eu-central-1

The same text stands in FLEETPROF_STORE of every process that works on a store. One capture in S3 is named by its store
and `/v1/NAMESPACE/UID` behind the prefix, the settings there or at the end. Guarantees: `parse_location` and `text`
are each other's inverse; holds no credential, and refuses a text that does (S3's come from boto3's own chain:
environment, profile, web identity, instance role).
"""

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from fleetprof_api import keys

if TYPE_CHECKING:
    from fleetprof_store.base import Store

VARIABLE: Final = "FLEETPROF_STORE"
_SETTINGS: Final = ("endpoint", "path_style", "region")
# Store, namespace, uid, what stands behind them (the page's name), settings.
_CAPTURE: Final = re.compile(rf"(s3://.*)/{keys.MAJOR}/([^/?]+)/([^/?]+)(?:/[^?]*)?(\?.*)?")
_BOOLEANS: Final = {"true": True, "false": False}


class StoreLocation(msgspec.Struct, kw_only=True, frozen=True):
    """A directory, or a bucket with an optional prefix. `path_style` None: with an endpoint, not without."""

    directory: str = ""
    bucket: str = ""
    prefix: str = ""
    endpoint: str = ""
    path_style: bool | None = None
    region: str = ""

    def address(self) -> str:
        """The address for people, without settings."""
        return self.directory or f"s3://{self.bucket}/{self.prefix}"

    def of_cluster(self, cluster: str) -> "StoreLocation":
        """The location of one cluster's objects in a store of several; "" is a cluster without a name.

        Raises InvalidKeyPart.
        """
        below = keys.cluster_root(cluster).strip("/")
        if not below:
            return self
        if self.directory:
            return msgspec.structs.replace(self, directory=f"{self.directory}/{below}")
        return msgspec.structs.replace(self, prefix=f"{self.prefix}/{below}" if self.prefix else below)

    def text(self) -> str:
        """The whole location as one line; `parse_location` reads it."""
        if self.directory:
            return self.directory
        return f"s3://{self.bucket}{f'/{self.prefix}' if self.prefix else ''}{self.settings()}"

    def settings(self) -> str:
        """The settings alone, as they stand behind any address of the store: `?endpoint=…`, or nothing."""
        settings = {"endpoint": self.endpoint, "region": self.region}
        if self.path_style is not None:
            settings["path_style"] = str(self.path_style).lower()
        query = urlencode(sorted((name, value) for name, value in settings.items() if value), safe=":/")
        return f"?{query}" if query else ""


def parse_location(text: str) -> StoreLocation:
    """The location that a text names. Raises ValueError with the rule."""
    if not text.startswith("s3://"):
        if "://" in text:
            raise ValueError(f"{text!r} must be a directory or s3://bucket/prefix")
        if not text:
            raise ValueError("the store is not named: give a directory or s3://bucket/prefix")
        return StoreLocation(directory=str(Path(text).absolute()))
    parts = urlsplit(text)
    if "@" in parts.netloc or not parts.netloc or ":" in parts.netloc or parts.fragment:
        # What is wrong may be a credential, so it is not repeated.
        raise ValueError("a store in S3 must be s3://bucket or s3://bucket/prefix, without credentials, port or '#'")
    settings: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _SETTINGS or name in settings:
            raise ValueError(f"{name[:40]!r} in the store's address must be one of {', '.join(_SETTINGS)}, once")
        settings[name] = value
    endpoint = settings.get("endpoint", "")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        raise ValueError(f"endpoint in the store's address must begin with http:// or https://, got {endpoint[:80]!r}")
    path_style = settings.get("path_style")
    if path_style is not None and path_style not in _BOOLEANS:
        raise ValueError(f"path_style in the store's address must be true or false, got {path_style[:40]!r}")
    return StoreLocation(
        bucket=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint=endpoint,
        path_style=None if path_style is None else _BOOLEANS[path_style],
        region=settings.get("region", ""),
    )


def parse_capture_address(text: str) -> tuple[StoreLocation, str, str]:
    """Store, namespace and uid of a capture in S3, from an address of it or of something in it.

    Raises ValueError with the rule.
    """
    found = _CAPTURE.fullmatch(text)
    if found is None:
        address = parse_location(text).address()
        raise ValueError(f"{address} names no capture: give s3://bucket/prefix/{keys.MAJOR}/NAMESPACE/UID")
    if found[4] and "?" in found[1]:
        raise ValueError(f"the settings of {text} must be in one place: behind the store, or at the end")
    return parse_location(found[1] + (found[4] or "")), found[2], found[3]


def open_location(location: StoreLocation, *, secret: bytes | None = None) -> "Store":
    """The store there. `secret` signs the upload URLs of a directory, which is made then; a reader needs none.

    Raises StoreError, and ValueError for a prefix that cannot be.
    """
    if location.directory:
        from fleetprof_store.directory import DirectoryStore

        store = DirectoryStore(location.directory, secret or secrets.token_bytes(32), "")
        if secret:
            store.prepare()
        return store
    from fleetprof_store.s3.store import S3Store

    return S3Store(
        location.bucket,
        location.prefix,
        location.endpoint or None,
        path_style=location.path_style,
        region=location.region or None,
    )
