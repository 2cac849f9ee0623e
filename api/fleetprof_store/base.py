"""The seam to the object store: what every store can do, and nothing more.

Guarantees that every implementation keeps (one shared test suite holds them all to it):
- a key is written whole or not at all; readers never see a half-written object;
- an upload is granted part by part with size and SHA-256 fixed beforehand; a part that differs is refused by the store;
- a grant reaches one key only and expires;
- the calls block (boto3 does); an event loop calls them through a thread.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol, runtime_checkable

from fleetprof_api.errors import FleetprofError


class StoreError(FleetprofError):
    """The store did not do what was asked; `retryable` tells whether the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class NotFound(StoreError):
    """No object under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no object {key!r} in the store", retryable=False)


@dataclass(frozen=True, slots=True)
class UploadPart:
    """One part as announced: its exact length in bytes and its SHA-256 (32 bytes)."""

    size_bytes: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class PartGrant:
    """Permission to PUT one part: the URL, and the headers that were signed with it."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission to upload one object: one `PartGrant` per announced part, until `expires_unix_ns`."""

    upload_id: str
    parts: list[PartGrant]
    expires_unix_ns: int


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as listed: key and size in bytes; `version` changes when it is replaced, "" where that is not known."""

    key: str
    size_bytes: int
    version: str = ""


class Store(Protocol):
    """An object store. Every method raises StoreError; reads raise NotFound for an absent key."""

    def put(self, key: str, data: bytes) -> None:
        """Writes a small object (at most a few MiB), replacing what is there."""

    def get(self, key: str) -> bytes:
        """Reads a small object whole."""

    def open(self, key: str) -> IO[bytes]:
        """Opens an object for streaming reads; the caller closes it."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes from `start` on, `length` of them or as many as there are; both are at least 0."""

    def head(self, key: str) -> ObjectInfo:
        """One object as it would be listed."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects below a prefix, in key order."""

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects; absent ones are no error."""

    def locate(self, key: str) -> str:
        """The object's address for people: a file path or an s3:// URL. Never a signed one."""

    def grant_upload(self, key: str, parts: Sequence[UploadPart], *, lifetime_s: int) -> Grant:
        """Begins a multipart upload of one object and grants a PUT for each part."""

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> None:
        """Joins the uploaded parts into the object, verifying each checksum; repeating it is no error."""

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Drops an unfinished upload; an unknown one is no error."""


@runtime_checkable
class SigningStore(Protocol):
    """A store whose objects others can read and write by an address of one object, without a credential of its own.

    Both raise StoreError; an address is good for `lifetime_s` from now, and what was begun by then may end later.
    """

    def sign_read(self, key: str, *, lifetime_s: int, saved_as: str = "") -> PartGrant:
        """An address to GET one object, which need not be there; a browser saves it as the file `saved_as`."""

    def sign_write(self, key: str, data: UploadPart, *, lifetime_s: int) -> PartGrant:
        """An address to PUT these bytes under this key, replacing what is there; other bytes are refused."""
