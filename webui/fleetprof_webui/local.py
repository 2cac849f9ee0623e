"""The service on one machine, for its user: on loopback only, signed in by a one-time token.

Guarantees: listens on 127.0.0.1 and nowhere else, and hears this user's processes and root's alone (on Linux), so that
a cookie is worth nothing to another user; an address of `make_address` signs in once; the service announces
another when a browser comes without a session and none is unused; it ends with the block, at the latest a second later,
whatever streams are open.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_store.base import Store

from fleetprof_webui.access.local import LocalAccess
from fleetprof_webui.app import create_application
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database
from fleetprof_webui.listener.peers import find_listener, is_of_this_user
from fleetprof_webui.listener.server import make_server
from fleetprof_webui.models.opened import OpenedPage
from fleetprof_webui.reports.whole_reports import WholeReports
from fleetprof_webui.service import CaptureRequests, Service

USUAL_PORT: Final = 8770
_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 128
_LIMITS: Final = ConnectionLimits(most=256, most_of_one=256, kept_s=10.0)
_ENDS_WITHIN_S: Final = 1


@dataclass(frozen=True, slots=True)
class LocalSite:
    """A service that answers."""

    port: int
    access: LocalAccess
    squatter: int | None = None
    """The user who has the usual port, where it was wanted and is another's."""

    def make_address(self, page: str = "") -> str:
        """An address that signs in once.

        The token is behind #, so that it is in no request line and no log; `page` is where it leads.
        """
        return _address(self.port, self.access.make_token(), page)


@asynccontextmanager
async def serve_locally(
    store: Store,
    catalog_url: str,
    *,
    port: int | None,
    captures: CaptureRequests | None,
    look_every_s: float,
    announce: Callable[[str], None],
    opened: Callable[[], OpenedPage] | None = None,
) -> AsyncIterator[LocalSite]:
    """A service over `store` until the block ends; `port` None: the usual one, else any.

    `announce` is given each further address that signs in; `opened` tells how far opened traces are. The catalog is
    brought to what the store holds every `look_every_s`. Raises OSError, CatalogUnusable.
    """
    with _listen(port) as place:
        taken = place.getsockname()[1]
        catalog = Catalog(store, await asyncio.to_thread(open_database, catalog_url))
        access = LocalAccess(
            may_capture=captures is not None, announce_token=lambda token: announce(_address(taken, token))
        )
        service = Service(
            store=store, catalog=catalog, access=access, reports=WholeReports(store), captures=captures, opened=opened
        )
        hosts = [f"{name}:{taken}" for name in (_HOST, "localhost")]
        server = make_server(
            create_application(service, hosts=hosts, look_every_s=look_every_s),
            limits=_LIMITS,
            ends_within_s=_ENDS_WITHIN_S,
            admits=is_of_this_user,
        )
        serving = asyncio.create_task(server.serve(sockets=[place]))
        try:
            yield LocalSite(taken, access, _find_squatter(taken) if port is None else None)
        finally:
            server.should_exit = True
            await serving
            catalog.close()


def _address(port: int, token: str, page: str = "") -> str:
    return f"http://{_HOST}:{port}/{page}#token={token}"


def _find_squatter(taken: int) -> int | None:
    owner = find_listener(USUAL_PORT) if taken != USUAL_PORT else None
    return None if owner in (None, os.getuid()) else owner


@contextmanager
def _listen(port: int | None) -> Iterator[socket.socket]:
    try:
        place = socket.create_server((_HOST, USUAL_PORT if port is None else port), backlog=_BACKLOG)
    except OSError:
        if port is not None:
            raise
        place = socket.create_server((_HOST, 0), backlog=_BACKLOG)
    with place:
        yield place
