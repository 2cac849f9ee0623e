"""The operator as a process that tests may kill: real but for a shared token, short waits and a directory store.

It says `{"hub": port, "http": port, "alerts": port or 0}` once it is ready, or stands by.
"""

import asyncio
import socket
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from fleetprof_api.process.address import HostPort
from fleetprof_operator.hub.access.authentication import SharedToken
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.storage.uploads import serve_uploads
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.process import Operator
from fleetprof_operator.settings import OperatorAddresses, read_settings
from fleetprof_store.directory import DirectoryStore

MS = 10**6


def run(folder: Path, token: str, more: list[str], ready: Connection) -> None:
    """The operator over a store's folder until it is ended."""
    asyncio.run(_run(folder, token, more, ready))


async def _run(folder: Path, token: str, more: list[str], ready: Connection) -> None:
    arguments = ["--store", str(folder), "--namespace", "fleetprof-system"]
    settings = read_settings([*arguments, *more], {})
    free = HostPort("127.0.0.1", 0)
    listen = OperatorAddresses(*(free if address.host == "0.0.0.0" else address for address in settings.listen))
    settings = replace(settings, listen=listen)
    set_up_logging(settings.log_level)
    store = DirectoryStore(settings.store.directory, b"s" * 32, "")
    uploads = await serve_uploads(store, socket.create_server(("127.0.0.1", 0)))
    cluster = await Cluster.connect()
    operator = Operator(
        settings,
        cluster=cluster,
        store=store,
        authenticator=SharedToken(token),
        certificates=None,
        hub_settings=HubSettings(
            look_again_ns=50 * MS,
            gather_ns=1000 * MS,
            deaf_patience_ns=1000 * MS,
            restate_ns=3000 * MS,
            cancel_wait_ns=4000 * MS,
            deadline_wait_ns=200 * MS,
            write_interval_ns=10 * MS,
            store_retry_ns=100 * MS,
            store_patience_ns=2000 * MS,
            max_captures=settings.max_captures,
            max_captures_per_namespace=settings.max_captures_per_namespace,
        ),
    )
    running = asyncio.create_task(operator.run(asyncio.Event()))
    telling = asyncio.create_task(_tell(operator, ready))
    try:
        await running
    finally:
        telling.cancel()
        await cluster.close()
        await uploads.close()


async def _tell(operator: Operator, ready: Connection) -> None:
    while not (listening := operator.hub_server or operator.relay) or not listening.port or not operator.probe_server:
        await asyncio.sleep(0.01)
    while operator.relay is None and not operator.policies.is_running:
        await asyncio.sleep(0.01)
    ready.send({"hub": listening.port, "http": operator.probe_server.port, "alerts": operator.policies.port})
