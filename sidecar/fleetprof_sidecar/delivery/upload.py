"""PUTs the parts of one file to the URLs that the hub granted. Blocking: runs in a thread.

Guarantees: the signed headers go out as they are, each part's SHA-256 is verified before it leaves, retries are bounded
(then a new grant is needed), at most one part is in memory, and no message contains a signed URL.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from fleetprof_api.errors import FleetprofError
from fleetprof_api.hub.local_hub import UPLOAD_SCHEME
from fleetprof_api.process.backoff import Backoff

from fleetprof_sidecar.capture.process_capture import StoredFile

if TYPE_CHECKING:
    from urllib3 import PoolManager

TRIES: Final = 4
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
# What urllib3's names mean.
_WORDS: Final = {
    "NameResolutionError": "the pod's DNS does not know this name: ",
    "NewConnectionError": "nothing takes connections there: ",
    "ConnectTimeoutError": "no connection within 10 s: ",
    "SSLError": "its certificate is not trusted, or it speaks no TLS: ",
}


class GrantedPart(Protocol):
    """The target of one part: hub.proto's PartGrant."""

    @property
    def url(self) -> str:
        """The signed URL, good until the grant expires."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that were signed with it."""


class UploadBroken(FleetprofError):
    """The parts did not arrive; a new grant may help."""


class StoreUnreached(UploadBroken):
    """No connection to the store came about."""


class FileDamaged(FleetprofError):
    """The file is not what it was when it was written; nothing helps."""


def put_parts(
    pool: "PoolManager",
    path: Path,
    stored: StoredFile,
    grants: Sequence[GrantedPart],
    stop: threading.Event,
    backoff: Backoff,
) -> list[str]:
    """Uploads every part in order and returns the ETags. Raises UploadBroken, StoreUnreached, FileDamaged."""
    if len(grants) != len(stored.part_sizes):
        raise UploadBroken(f"{len(grants)} parts were granted, {len(stored.part_sizes)} were announced")
    etags = []
    with path.open("rb") as file:
        for size, sha256, grant in zip(stored.part_sizes, stored.part_sha256, grants, strict=True):
            part = file.read(size)
            if len(part) != size or hashlib.sha256(part).hexdigest() != sha256:
                raise FileDamaged(f"{path.name} changed on disk after it was written")
            etags.append(_put(pool, part, grant, stop, backoff))
    return etags


def _put(pool: "PoolManager", part: bytes, grant: GrantedPart, stop: threading.Event, backoff: Backoff) -> str:
    import urllib3

    where = urlsplit(grant.url)
    if where.scheme not in ("http", "https", UPLOAD_SCHEME):
        raise UploadBroken(f"the granted URL is of scheme {where.scheme[:16]!r}, not http or https")
    # Whatever address the connection goes to, the store is asked by the name that was signed.
    headers = {**grant.headers, "Host": where.netloc}
    problem, reached = "", False
    for attempt in range(TRIES):
        if attempt and stop.wait(backoff.next_s()):
            break
        try:
            response = pool.request("PUT", grant.url, body=part, headers=headers, redirect=False, preload_content=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            problem = f"{where.hostname}: {_WORDS.get(type(error).__name__, '')}{type(error).__name__}"
            continue
        reached = True
        try:
            answer = response.read(512).decode(errors="replace")
        except urllib3.exceptions.HTTPError:
            answer = ""
        finally:
            response.close()
        if 200 <= response.status < 300:
            backoff.reset()
            return str(response.headers.get("ETag", ""))
        problem = f"{where.hostname} answered {response.status} {' '.join(answer.split())[:200]}"
        if response.status not in _PASSING:
            break
    raise (UploadBroken if reached or not problem else StoreUnreached)(problem or "stopped")
