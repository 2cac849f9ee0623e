"""A web server beside others in one process.

Guarantees: signals are left to whoever runs it, who ends all servers together; connections are limited (`connections`).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fleetprof_api.process.connection_table import ConnectionLimits
from starlette.types import ASGIApp

from fleetprof_webui.listener.connections import Admits, LimitedConnections


class Server(uvicorn.Server):
    """uvicorn's, which by itself would end at a signal."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes none."""
        yield


def make_server(
    app: ASGIApp,
    *,
    limits: ConnectionLimits,
    ends_within_s: int,
    host: str = "127.0.0.1",
    port: int = 0,
    admits: Admits | None = None,
) -> Server:
    """A server that is told nothing by headers of a proxy and says nothing of itself."""
    return Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=LimitedConnections(limits, admits).make,  # type: ignore[arg-type]
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=ends_within_s,
        )
    )
