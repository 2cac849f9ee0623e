"""One capture in the object store, through addresses that the operator signs: the store of an analyzer Job's pod.

The pod holds no credential of the store. For each object it shows its token to the operator (`analyses.proto`) and gets
an address of that object, good for minutes.

Guarantees: an operator that is away for `patience_s` at a time (an upgrade) is waited for; an address is asked for anew
rather than used twice; no message contains one; deleting and multipart uploads are refused.
"""

import hashlib
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import grpc
import urllib3
from fleetprof_api.hub import analyses_pb2 as pb
from fleetprof_api.hub.analyses_pb2_grpc import AnalysesStub
from fleetprof_api.process.address import is_loopback
from fleetprof_api.process.backoff import Backoff

from fleetprof_store.base import Grant, NotFound, ObjectInfo, StoreError, UploadPart
from fleetprof_store.checks import check_key, find_write_problem
from fleetprof_store.response_body import open_body

if TYPE_CHECKING:
    from collections.abc import Mapping

Answer = TypeVar("Answer")
_AWAY: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_CALL_S: Final = 30.0
_TRIES: Final = 3
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 8.0
_SAID_BYTES: Final = 512


class GrantedStore:
    """The store of one capture. `target` is the operator's HOST:PORT, `token_file` the pod's token, read at each call.

    `ca_file` has the authority of the operator's certificate; None: plain text, for a loopback address only.
    """

    def __init__(self, target: str, token_file: Path, ca_file: Path | None, *, patience_s: float = 120.0) -> None:
        if ca_file is not None:
            credentials = grpc.ssl_channel_credentials(_read(ca_file))
            channel = grpc.secure_channel(target, credentials)
        elif is_loopback(target):
            channel = grpc.insecure_channel(target)
        else:
            raise ValueError(f"{target} is not a loopback address: the operator's authority must be given")
        self._stub = AnalysesStub(channel)
        self._target = target
        self._token_file = token_file
        self._patience_s = patience_s
        timeout = urllib3.Timeout(connect=10.0, read=60.0)
        # As many connections as readers of the analyzer.
        self._http = urllib3.PoolManager(
            num_pools=4, maxsize=16, retries=False, timeout=timeout, ssl_context=ssl.create_default_context()
        )

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, replacing what is there."""
        part = UploadPart(len(data), hashlib.sha256(data).digest())
        if problem := find_write_problem(part):
            raise StoreError(f"{key!r}: {problem}", retryable=False)
        wanted = pb.SignWriteRequest(key=check_key(key), size_bytes=part.size_bytes, sha256=part.sha256)
        answer = self._exchange("PUT", key, lambda: self._ask(self._stub.SignWrite, wanted), data)
        answer.release_conn()

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises NotFound."""
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> IO[bytes]:
        """Opens an object for streaming reads. Raises NotFound; reads raise StoreError."""
        wanted = pb.SignReadRequest(key=check_key(key))
        answer = self._exchange("GET", key, lambda: self._ask(self._stub.SignRead, wanted), None)
        return open_body(answer, _errors)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Reads a part of an object, after all that lies before it. Raises NotFound."""
        with self.open(key) as file:
            while start > 0 and (skipped := len(file.read(min(start, 1 << 20)))):
                start -= skipped
            return b"" if start > 0 else file.read(length)

    def head(self, key: str) -> ObjectInfo:
        """One object as it would be listed. Raises NotFound."""
        for info in self.list(check_key(key)):
            if info.key == key:
                return info
        raise NotFound(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects of the capture below a prefix, in key order."""
        pages = self._ask(lambda *a, **n: list(self._stub.ListObjects(*a, **n)), pb.ListObjectsRequest())
        found = (item for page in pages for item in page.objects)
        return iter([ObjectInfo(item.key, item.size_bytes) for item in found if item.key.startswith(prefix)])

    def locate(self, key: str) -> str:
        """The object's key: where the store itself is, is not known here."""
        return check_key(key)

    def delete(self, keys: Sequence[str]) -> None:
        """Refused: nobody signs that."""
        raise _refuse("deleted")

    def grant_upload(self, key: str, parts: Sequence[UploadPart], *, lifetime_s: int) -> Grant:
        """Refused: nobody signs that."""
        raise _refuse("granted to others")

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadPart], etags: Sequence[str]) -> None:
        """Refused: nobody signs that."""
        raise _refuse("uploaded in parts")

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Refused: nobody signs that."""
        raise _refuse("uploaded in parts")

    def _ask(self, method: Callable[..., Answer], wanted: object) -> Answer:
        """One call of the operator, again and again while it is away."""
        until = time.monotonic() + self._patience_s
        pause = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            try:
                token = _read(self._token_file).decode("ascii", "replace").strip()
                return method(wanted, metadata=(("authorization", f"Bearer {token}"),), timeout=_CALL_S)
            except grpc.RpcError as error:
                code, message = error.code(), str(error.details())[:500]
            if code not in _AWAY:
                raise StoreError(f"the operator at {self._target} refuses: {message} ({code.name})", retryable=False)
            pause_s = pause.next_s()
            if time.monotonic() + pause_s >= until:
                raise StoreError(f"the operator at {self._target} does not answer: {message}", retryable=True)
            time.sleep(pause_s)

    def _exchange(
        self, method: str, key: str, sign: Callable[[], pb.SignedAddress], data: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        """The store's good answer, its body not read yet."""
        problem, retryable = "", True
        pause = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(pause.next_s())
            address = sign()
            where = urlsplit(address.url)
            if where.scheme not in ("http", "https"):
                raise StoreError(f"a signed address is of scheme {where.scheme[:16]!r}", retryable=False)
            headers: Mapping[str, str] = dict(address.headers)
            try:
                answer = self._http.request(
                    method,
                    address.url,
                    body=data,
                    headers=headers,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
            except urllib3.exceptions.HTTPError as error:
                problem, retryable = f"the store at {where.hostname} cannot be reached: {type(error).__name__}", True
                continue
            if 200 <= answer.status < 300:
                return answer
            with _errors():
                message = " ".join(answer.read(_SAID_BYTES).decode(errors="replace").split())
            answer.close()
            if answer.status == 404 and method == "GET":
                raise NotFound(key)
            problem = f"the store at {where.hostname} answered {answer.status} for {key!r}: {message[:200]}"
            # An address may have expired on its way, or the clock that signed it may have been set.
            retryable = answer.status in _PASSING
            if not retryable and answer.status != 403:
                break
        raise StoreError(problem, retryable=retryable)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise StoreError(f"the store broke off: {type(error).__name__}", retryable=True) from None


def _refuse(what: str) -> StoreError:
    return StoreError(
        f"nothing can be {what} here: an analysis reads its capture and writes its report", retryable=False
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", retryable=True) from None
