"""The object store in a directory: local mode, one machine, no credentials.

Guarantees beyond `base`: an object appears by an atomic rename after it was synced; a key cannot leave the root; a
grant is a signed URL (`signed_parts`), so the process that serves the PUTs (`hub.storage.uploads`) needs no memory of
grants and may be restarted with the same secret; what it makes is for its user alone, folders 0700 and files 0600, and
what was there keeps its mode. Only the standard library is used. Unfinished uploads lie in `<root>/.uploads/` and are
dropped after a day.
"""

import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from fleetprof_store.base import Grant, NotFound, ObjectInfo, PartGrant, StoreError, UploadPart
from fleetprof_store.checks import check_key, check_parts
from fleetprof_store.disk import create, disk_errors, make_folders, move, sync
from fleetprof_store.part_writer import PartWriter, part_path
from fleetprof_store.signed_parts import GrantRefused, PartSigner, SignedPart

_STALE_UPLOAD_S: Final = 86_400
_CHUNK_BYTES: Final = 1 << 20


class DirectoryStore:
    """Objects as files below `root`, which is made when something is put there, or by `prepare`; reading makes nothing.

    `secret` signs grants (32 random bytes, kept over restarts where grants must survive them); `base_url` is where
    `serve_uploads` listens, e.g. `http://127.0.0.1:8080` (empty: filled in by it); `clock` gives Unix nanoseconds.
    """

    def __init__(
        self, root: Path | str, secret: bytes, base_url: str, *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self.root = Path(root).absolute()
        self.base_url = base_url.rstrip("/")
        self._signer = PartSigner(secret)
        self._clock = clock
        self._uploads = self.root / ".uploads"

    def prepare(self) -> None:
        """Makes the folders, where they are missing. Raises StoreError."""
        with disk_errors(self.root):
            try:
                make_folders(self._uploads)
            except FileNotFoundError:  # /proc and the like hold no folders of others
                raise StoreError(f"{self.root}: cannot be made there; choose another place", retryable=False) from None

    def put(self, key: str, data: bytes) -> None:
        """Writes a small object, replacing what is there."""
        path = self._path(key)
        self.prepare()
        temporary = self._uploads / f"put-{secrets.token_hex(8)}.tmp"
        with disk_errors(path):
            try:
                with create(temporary) as file:
                    file.write(data)
                    sync(file)
                move(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises NotFound."""
        with self.open(key) as file, disk_errors(self._path(key)):
            return file.read()

    def open(self, key: str) -> IO[bytes]:
        """Opens an object for streaming reads. Raises NotFound."""
        path = self._path(key)
        with disk_errors(path):
            try:
                return path.open("rb")
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                raise NotFound(key) from None

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Reads a part of an object. Raises NotFound."""
        with self.open(key) as file, disk_errors(self._path(key)):
            file.seek(start)
            return file.read(length)

    def head(self, key: str) -> ObjectInfo:
        """One object as it would be listed. Raises NotFound."""
        path = self._path(key)
        with disk_errors(path):
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                raise NotFound(key) from None
        if not stat.S_ISREG(status.st_mode):
            raise NotFound(key)
        return _info(key, status)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects below a prefix, in key order."""
        folder = prefix.rpartition("/")[0]
        top = self._path(folder) if folder else self.root
        found = []
        for at, folders, files in os.walk(top):
            if Path(at) == self.root:
                folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                path = Path(at) / name
                key = path.relative_to(self.root).as_posix()
                if key.startswith(prefix):
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        found.append(_info(key, path.stat()))
        return iter(sorted(found, key=lambda info: info.key))

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects and the folders that become empty; absent ones are no error."""
        for key in keys:
            path = self._path(key)
            with disk_errors(path):
                with suppress(FileNotFoundError, NotADirectoryError):
                    path.unlink()
                for folder in path.parents:
                    if folder == self.root:
                        break
                    try:
                        folder.rmdir()
                    except OSError:
                        break

    def locate(self, key: str) -> str:
        """The object's absolute file path."""
        return str(self._path(key))

    def grant_upload(self, key: str, parts: Sequence[UploadPart], *, lifetime_s: int) -> Grant:
        """Begins an upload; each part's URL is a PUT to the process that serves uploads."""
        check_key(key)
        check_parts(parts)
        if not self.base_url:
            raise StoreError("no process serves uploads yet; ask again", retryable=True)
        self.prepare()
        self._drop_stale_uploads()
        upload_id = secrets.token_hex(16)
        with disk_errors(self._uploads):
            folder = self._uploads / upload_id
            folder.mkdir(mode=0o700)
            with create(folder / "key") as file:
                file.write(key.encode("ascii"))
        expires_s = self._clock() // 1_000_000_000 + lifetime_s
        grants = []
        for number, part in enumerate(parts, 1):
            signed = SignedPart(key, upload_id, number, part.size_bytes, part.sha256)
            url = f"{self.base_url}{self._signer.address(signed, expires_s)}"
            grants.append(PartGrant(url, {"Content-Length": str(part.size_bytes)}))
        return Grant(upload_id, grants, expires_s * 1_000_000_000)

    def check_grant(self, key: str, query: Mapping[str, str]) -> SignedPart:
        """Reads the permission in the URL of a PUT. Raises GrantRefused when it was not signed here or has expired."""
        return self._signer.check(key, query, self._clock())

    def receive(self, part: SignedPart) -> PartWriter:
        """A writer for the bytes of a granted part. Raises GrantRefused when the upload has ended."""
        folder = self._uploads / part.upload_id
        with disk_errors(folder):
            try:
                return PartWriter(part, folder)
            except FileNotFoundError:
                raise GrantRefused("this upload was completed or aborted; ask for a new pre-signed URL") from None

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> None:
        """Joins the parts into the object, reading each again for its checksum; repeating it is no error."""
        path = self._path(key)
        check_parts(parts)
        folder = self._upload_folder(upload_id)
        with disk_errors(path):
            try:
                granted = (folder / "key").read_text(encoding="ascii")
            except FileNotFoundError:
                if self._holds(path, parts):
                    return
                raise StoreError(f"the upload of {key!r} is not known any more; begin again", retryable=False) from None
            if granted != key:
                raise StoreError(f"this upload was granted for another key than {key!r}", retryable=False)
            if [etag.strip('"') for etag in etags] != [part.sha256.hex() for part in parts]:
                raise StoreError(f"the ETags for {key!r} are not those of its parts; begin again", retryable=False)
            whole = folder / f"whole.{secrets.token_hex(4)}"
            with create(whole) as out:
                for number, part in enumerate(parts, 1):
                    self._append(out, part_path(folder, number), part, f"part {number} of {key!r}")
                sync(out)
            move(whole, path)
        shutil.rmtree(folder, ignore_errors=True)

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Drops an unfinished upload; an unknown one is no error."""
        check_key(key)
        shutil.rmtree(self._upload_folder(upload_id), ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _upload_folder(self, upload_id: str) -> Path:
        if len(upload_id) != 32 or not set(upload_id) <= set("0123456789abcdef"):
            raise StoreError("this is not the id of an upload", retryable=False)
        return self._uploads / upload_id

    @staticmethod
    def _append(out: IO[bytes], path: Path, part: UploadPart, what: str) -> None:
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    out.write(chunk)
        except FileNotFoundError:
            raise StoreError(f"{what} was not uploaded; begin again", retryable=False) from None
        if digest.digest() != part.sha256:
            raise StoreError(f"{what} has another checksum than announced; begin again", retryable=False)

    @staticmethod
    def _holds(path: Path, parts: Sequence[UploadPart]) -> bool:
        try:
            with path.open("rb") as file:
                if file.seek(0, os.SEEK_END) != sum(part.size_bytes for part in parts):
                    return False
                file.seek(0)
                return all(hashlib.sha256(file.read(part.size_bytes)).digest() == part.sha256 for part in parts)
        except FileNotFoundError:
            return False

    def _drop_stale_uploads(self) -> None:
        oldest = time.time() - _STALE_UPLOAD_S  # against file times, which the operating system makes
        for path in self._uploads.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink()


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    # Objects are replaced by renaming: the new one has another inode, and the time where an inode is used again.
    return ObjectInfo(key, status.st_size, f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}")
