"""`fleetprof-webui`: settings, store, database and API server of the real world around one `ClusterSite`.

Exit codes: 0 ended as asked; 2 wrong settings, or what they name cannot be used; 1 an error of its own.
"""

import asyncio
import logging
import os
import signal
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fleetprof_api.process.address import HostPort
from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_api.process.log import set_up_logging
from fleetprof_store.base import Store, StoreError
from fleetprof_store.clusters import ClustersStore
from fleetprof_store.location import open_location
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp

from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import CatalogUnusable, open_database
from fleetprof_webui.cluster.settings import Settings, read_settings
from fleetprof_webui.cluster.site import make_site
from fleetprof_webui.kubernetes_api import KubernetesApi
from fleetprof_webui.listener.server import Server, make_server

WRONG_SETTINGS: Final = 2
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MOST_OF_PEOPLE: Final = 1024
_MOST_OF_PROBES: Final = 64
_ENDS_WITHIN_S: Final = 5
_SWITCH_S: Final = 0.0005  # a thread that calculates holds up the event loop for so long, each time

log = logging.getLogger(__name__)


def connect_api(environment: Mapping[str, str], account: Path) -> KubernetesApi:
    """The API server of the cluster that this process runs in. Raises ValueError where it runs in none."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not port.isdecimal():
        raise ValueError("KUBERNETES_SERVICE_HOST is not set: this process runs in a cluster alone")
    address = f"https://{HostPort(host, int(port)).text()}"
    return KubernetesApi(address, ca_file=account / "ca.crt", token_file=account / "token")


async def serve(settings: Settings, store: Store) -> None:
    """Until SIGTERM or SIGINT. Raises CatalogUnusable, OSError."""
    engine = await asyncio.to_thread(open_database, settings.catalog)
    api = connect_api(os.environ, ACCOUNT)
    catalog = Catalog(store, engine, cluster=settings.cluster)
    site = make_site(settings, store, catalog, api)
    servers = [
        _make_server(site.pages, settings.listen.pages, _MOST_OF_PEOPLE),
        _make_server(site.probes, settings.listen.http, _MOST_OF_PROBES),
        _make_server(site.metrics, settings.listen.metrics, _MOST_OF_PROBES),
    ]

    def end() -> None:
        for server in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end)
    log.info("people come to %s", settings.public_url or "forwarded ports: kubectl fleetprof ui")
    try:
        await asyncio.gather(*(server.serve() for server in servers))
    finally:
        await api.close()
        catalog.close()


def _make_server(app: ASGIApp, at: HostPort, most: int) -> Server:
    # An ingress brings all people from its own address.
    limits = ConnectionLimits(most=most, most_of_one=most * 3 // 4, kept_s=10.0)
    return make_server(app, limits=limits, ends_within_s=_ENDS_WITHIN_S, host=at.host, port=at.port)


def set_up_logs(level: str) -> None:
    """Sets up the logs of this process, in which no signed address is, whatever the level."""
    set_up_logging(level)
    # The audit log is written whatever the level.
    logging.getLogger("fleetprof.audit").setLevel(logging.INFO)
    # boto3 writes down what it signs.
    for name in ("httpx2", "uvicorn", "boto3", "botocore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def main() -> None:
    """Runs the process."""
    sys.setswitchinterval(_SWITCH_S)
    settings = read_settings(sys.argv[1:])
    set_up_logs(settings.log_level)
    try:
        store = open_location(settings.store)
        if settings.cluster:
            store = ClustersStore(store, settings.cluster)
        asyncio.run(serve(settings, store))
    except (StoreError, CatalogUnusable, SQLAlchemyError, ssl.SSLError, ValueError, OSError) as error:
        log.critical("cannot start: %s", error)
        sys.exit(WRONG_SETTINGS)
    except Exception:
        log.critical("ended by an error of its own", exc_info=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
