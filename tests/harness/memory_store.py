"""An object store in memory, which tests of the hub, the analyzer and the web UI run on.

Guarantees: the same promises as every store (`base`); grants are `memory://` URLs that `receive` takes in place of a
server's PUT, with size, checksum and expiry enforced. Thread-safe.
"""

import hashlib
import io
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from fleetprof_store.base import Grant, NotFound, ObjectInfo, PartGrant, StoreError, UploadPart
from fleetprof_store.checks import check_key, check_parts, find_write_problem


class _Upload:
    def __init__(self, key: str, parts: Sequence[UploadPart], expires_unix_ns: int) -> None:
        self.key = key
        self.parts = list(parts)
        self.expires_unix_ns = expires_unix_ns
        self.received: dict[int, bytes] = {}


class MemoryStore:
    """Objects in a dictionary. `clock` gives Unix nanoseconds."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, bytes] = {}
        self._writes = itertools.count(1)
        self._versions: dict[str, str] = {}
        self._uploads: dict[str, _Upload] = {}
        self._addresses: dict[str, tuple[str, int]] = {}

    def put(self, key: str, data: bytes) -> None:
        """Writes a small object, replacing what is there."""
        with self._lock:
            self._keep(check_key(key), bytes(data))

    def _keep(self, key: str, data: bytes) -> None:
        self._objects[key] = data
        self._versions[key] = str(next(self._writes))

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises NotFound."""
        with self._lock:
            if check_key(key) not in self._objects:
                raise NotFound(key)
            return self._objects[key]

    def open(self, key: str) -> IO[bytes]:
        """Opens an object for streaming reads. Raises NotFound."""
        return io.BytesIO(self.get(key))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Reads a part of an object. Raises NotFound."""
        return self.get(key)[start : start + length]

    def head(self, key: str) -> ObjectInfo:
        """One object as it would be listed. Raises NotFound."""
        size_bytes = len(self.get(key))
        return ObjectInfo(key, size_bytes, self._versions.get(key, ""))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects below a prefix, in key order."""
        with self._lock:
            found = [
                ObjectInfo(key, len(data), self._versions[key])
                for key, data in self._objects.items()
                if key.startswith(prefix)
            ]
        return iter(sorted(found, key=lambda info: info.key))

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects; absent ones are no error."""
        with self._lock:
            for key in keys:
                self._objects.pop(check_key(key), None)

    def locate(self, key: str) -> str:
        """The object's address: memory:// and its key."""
        return f"memory://{check_key(key)}"

    def grant_upload(self, key: str, parts: Sequence[UploadPart], *, lifetime_s: int) -> Grant:
        """Begins an upload; each part's URL is taken by `receive`."""
        check_key(key)
        check_parts(parts)
        upload_id = secrets.token_hex(16)
        expires = self._clock() + lifetime_s * 1_000_000_000
        with self._lock:
            self._uploads[upload_id] = _Upload(key, parts, expires)
        urls = [f"memory://upload/{upload_id}/{number}" for number in range(1, len(parts) + 1)]
        grants = [
            PartGrant(url, {"Content-Length": str(part.size_bytes)}) for url, part in zip(urls, parts, strict=True)
        ]
        return Grant(upload_id, grants, expires)

    def receive(self, url: str, data: bytes) -> str:
        """Acts as a server's PUT: takes one part's bytes, returns its ETag. Raises StoreError on any difference."""
        upload_id, _, number = url.removeprefix("memory://upload/").partition("/")
        with self._lock:
            upload = self._uploads.get(upload_id)
            if upload is None:
                raise StoreError("this upload is not known: completed, aborted or never granted", retryable=False)
            if self._clock() >= upload.expires_unix_ns:
                raise StoreError("this grant has expired; ask for a new one", retryable=False)
            part = upload.parts[int(number) - 1]
            if len(data) != part.size_bytes:
                raise StoreError(f"{len(data)} bytes came, {part.size_bytes} were granted", retryable=False)
            if hashlib.sha256(data).digest() != part.sha256:
                raise StoreError("the bytes do not have the granted SHA-256", retryable=False)
            upload.received[int(number)] = bytes(data)
        return part.sha256.hex()

    def sign_read(self, key: str, *, lifetime_s: int, saved_as: str = "") -> PartGrant:
        """An address that `fetch` takes."""
        return self._sign(f"read {check_key(key)}", lifetime_s)

    def sign_write(self, key: str, data: UploadPart, *, lifetime_s: int) -> PartGrant:
        """An address that `write` takes."""
        if problem := find_write_problem(data):
            raise StoreError(problem, retryable=False)
        what = f"write {check_key(key)} {data.size_bytes} {data.sha256.hex()}"
        return self._sign(what, lifetime_s, {"Content-Length": str(data.size_bytes)})

    def fetch(self, url: str) -> bytes:
        """Acts as a server's GET. Raises StoreError, NotFound."""
        verb, key, *_ = self._signed(url)
        if verb != "read":
            raise StoreError("this address is not for reading", retryable=False)
        return self.get(key)

    def write(self, url: str, data: bytes) -> None:
        """Acts as a server's PUT of a whole object. Raises StoreError on any difference."""
        verb, key, *terms = self._signed(url)
        if verb != "write" or terms != [str(len(data)), hashlib.sha256(data).hexdigest()]:
            raise StoreError("these are not the bytes that were signed", retryable=False)
        self.put(key, data)

    def _sign(self, what: str, lifetime_s: int, headers: dict[str, str] | None = None) -> PartGrant:
        url = f"memory://signed/{secrets.token_hex(16)}"
        with self._lock:
            self._addresses[url] = what, self._clock() + lifetime_s * 1_000_000_000
        return PartGrant(url, headers or {})

    def _signed(self, url: str) -> Sequence[str]:
        with self._lock:
            what, expires_unix_ns = self._addresses.get(url, ("", 0))
        if self._clock() >= expires_unix_ns:
            raise StoreError("this address was never signed, or has expired", retryable=False)
        return what.split()

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> None:
        """Joins the parts into the object; repeating it is no error."""
        check_key(key)
        check_parts(parts)
        with self._lock:
            upload = self._uploads.get(upload_id)
            if upload is None:
                if _is_made_of(self._objects.get(key), parts):
                    return
                raise StoreError(f"the upload of {key!r} is not known any more; begin again", retryable=False)
            if upload.key != key or upload.parts != list(parts):
                raise StoreError(
                    f"this upload was granted for other parts or another key than {key!r}", retryable=False
                )
            missing = [number for number in range(1, len(parts) + 1) if number not in upload.received]
            if missing:
                raise StoreError(f"part {missing[0]} of {key!r} was not uploaded; begin again", retryable=False)
            if [etag.strip('"') for etag in etags] != [part.sha256.hex() for part in parts]:
                raise StoreError(f"the ETags for {key!r} are not those of its parts; begin again", retryable=False)
            self._keep(key, b"".join(upload.received[number] for number in sorted(upload.received)))
            del self._uploads[upload_id]

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Drops an unfinished upload; an unknown one is no error."""
        check_key(key)
        with self._lock:
            self._uploads.pop(upload_id, None)


def _is_made_of(data: bytes | None, parts: Sequence[UploadPart]) -> bool:
    if data is None or len(data) != sum(part.size_bytes for part in parts):
        return False
    at = 0
    for part in parts:
        if hashlib.sha256(data[at : at + part.size_bytes]).digest() != part.sha256:
            return False
        at += part.size_bytes
    return True
