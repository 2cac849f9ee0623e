"""Connections for uploads: to a store over HTTP and HTTPS, and to the hub of local mode at its socket.

Guarantees: the hub's own authority, and that of the store which it names, are trusted beside the system's, as they are
by now; a store whose address is given is asked there by its name, which its certificate must have; a socket is used
only when it is this user's own. urllib3 is imported with the first upload: an idle sidecar does without.
"""

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fleetprof_api.hub.local_hub import UPLOAD_SCHEME
from fleetprof_api.process.backoff import Backoff

from fleetprof_sidecar.capture.process_capture import StoredFile
from fleetprof_sidecar.delivery.upload import GrantedPart, UploadBroken, put_parts
from fleetprof_sidecar.hub.address import Address

if TYPE_CHECKING:
    from urllib3 import PoolManager

_CONNECT_TIMEOUT_S: Final = 10.0
_READ_TIMEOUT_S: Final = 60.0


class UploadConnections:
    """The upload connections of one sidecar; used from several threads."""

    def __init__(self, hub: Address, addresses: Mapping[str, str] = MappingProxyType({})) -> None:
        """`addresses` of names that cannot be resolved here."""
        self._hub = hub
        self._addresses = addresses
        self._lock = threading.Lock()
        self._pool: PoolManager | None = None
        self._authority: bytes | None = None
        self._store_authority = b""

    def trust(self, store_authority: str) -> None:
        """Uploads trust these certificates (PEM) from now on, beside the system's and the hub's; "": no others."""
        with self._lock:
            self._store_authority = store_authority.encode()

    def put(self, path: Path, stored: StoredFile, grants: Sequence[GrantedPart], stop: threading.Event) -> list[str]:
        """Uploads every part in order and returns the ETags. Raises UploadBroken, FileDamaged."""
        return put_parts(self._current(), path, stored, grants, stop, Backoff(0.5, 8.0))

    def _current(self) -> "PoolManager":
        with self._lock:
            try:
                authorities = filter(None, (self._hub.upload_authority(), self._store_authority))
                authority = b"\n".join(authorities) or None
                if self._pool is None or authority != self._authority:
                    self._pool = make_pool(authority, self._hub.connect_uploads, self._addresses)
                    self._authority = authority
            except (OSError, ValueError) as problem:
                raise UploadBroken(f"nobody to upload to: {problem}") from None
            return self._pool


def make_pool(
    authority: bytes | None = None,
    connect: Callable[[], socket.socket] | None = None,
    addresses: Mapping[str, str] = MappingProxyType({}),
) -> "PoolManager":
    """Connections for uploads, which trust `authority` (PEM) beside the system's. Raises ssl.SSLError.

    What goes to UPLOAD_SCHEME goes over `connect`; a host that `addresses` knows is not looked up.
    """
    import urllib3
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool

    context = None
    if authority is not None:
        import ssl

        context = ssl.create_default_context()
        context.load_verify_locations(cadata=authority.decode("ascii"))
    timeout = urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S)

    class LocalConnection(HTTPConnection):
        def connect(self) -> None:
            assert connect is not None
            self.sock = connect()

    class LocalPool(HTTPConnectionPool):
        ConnectionCls = LocalConnection

    class Pools(urllib3.PoolManager):
        def connection_from_host(
            self,
            host: str | None,
            port: int | None = None,
            scheme: str | None = "http",
            pool_kwargs: dict[str, Any] | None = None,
        ) -> HTTPConnectionPool:
            if scheme == UPLOAD_SCHEME:
                return LocalPool(str(host), retries=False, timeout=timeout)
            if address := addresses.get(str(host)):
                named = {"server_hostname": host, "assert_hostname": host} if scheme == "https" else {}
                return super().connection_from_host(address, port, scheme, {**(pool_kwargs or {}), **named})
            return super().connection_from_host(host, port, scheme, pool_kwargs)

    return Pools(num_pools=4, maxsize=4, retries=False, timeout=timeout, ssl_context=context)
