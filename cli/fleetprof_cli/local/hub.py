"""The hub, its upload server and its analyses in one process: what `fleetprof up` is, and the hub that a job starts.

Guarantees: whoever reads hub.json finds a hub that answers; stopping leaves no socket, no file and no process behind; a
capture that runs meanwhile is taken up again by the next one.
"""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fleetprof_api.hub.local_hub import HUB_SOCKET, UPLOAD_SOCKET, UPLOAD_URL, HubRecord
from fleetprof_api.private_directory import PrivateDirectory
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.version import VERSION
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import ServerTls, serve
from fleetprof_operator.hub.storage.uploads import serve_uploads
from fleetprof_store.base import StoreError
from fleetprof_store.directory import DirectoryStore

from fleetprof_cli.local.analysis import LocalAnalyses
from fleetprof_cli.local.network import TlsFiles, advertise
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure
from fleetprof_cli.store_location import StoreLocation, open_store


@asynccontextmanager
async def run_hub(
    state: StateDirectory,
    listen: tuple[HostPort, TlsFiles] | None,
    location: StoreLocation,
    *,
    metrics: HostPort | None = None,
) -> AsyncIterator[tuple[HubRecord, Hub]]:
    """A hub that answers, until the block ends: at a socket, or on the network.

    `metrics`: where /metrics is. Raises Failure when it cannot be.
    """
    store = open_store(location, secret=state.upload_secret())
    async with AsyncExitStack() as cleanup:
        directory = cleanup.enter_context(PrivateDirectory(state.path))
        place = listen[0].text() if listen else f"unix:{directory.place(HUB_SOCKET)}"
        try:
            if isinstance(store, DirectoryStore):
                await _serve_uploads(store, directory, listen, cleanup)
            hub = Hub(store=store, analyze=LocalAnalyses(location).analyze)
            cleanup.push_async_callback(hub.close)
            await _restore(hub, location)
            tls = ServerTls(*listen[1].pem_pair()) if listen else None
            if metrics is not None:
                cleanup.push_async_callback(await _serve_metrics(hub, metrics))
            cleanup.push_async_callback(hub.history.close)
            cleanup.callback(asyncio.create_task(hub.history.run()).cancel)
            server = await serve(hub, place, token=state.token(), tls=tls)
            cleanup.push_async_callback(server.stop)
        except OSError as error:
            where = place if listen else f"a socket in {state.path}"
            step = (
                "choose another address" if listen else "use another state directory (--state), or listen on loopback"
            )
            raise Failure(
                f"cannot listen on {where}: {error.strerror or error}", next_step=f"{step}: --listen 127.0.0.1:0"
            ) from None
        record = HubRecord(
            address=advertise(listen[0], server.port).text() if listen else f"unix:{state.path / HUB_SOCKET}",
            pid=os.getpid(),
            store=location,
            started_unix_ns=time.time_ns(),
            ca_file=str(listen[1].authority) if listen else "",
            host_name=socket.gethostname(),
            version=VERSION,
        )
        state.publish(record)
        cleanup.callback(state.withdraw)
        yield record, hub


async def _serve_metrics(hub: Hub, at: HostPort) -> Callable[[], Awaitable[None]]:
    """Returns what ends it. Raises Failure."""
    from fleetprof_operator.hub.telemetry.snapshot import take_snapshot
    from fleetprof_operator.metrics import Metrics
    from fleetprof_operator.web.probes import serve_probes

    try:
        metrics = Metrics(dict)
        metrics.show_hub(hub)
        page = await serve_probes(at, str, metrics.registry, lambda: take_snapshot(hub.telemetry))
    except OSError as error:
        raise Failure(
            f"cannot serve /metrics on {at.text()}: {error.strerror or error}",
            next_step="choose another port: --metrics",
        ) from None
    return page.close


async def _serve_uploads(
    store: DirectoryStore,
    directory: PrivateDirectory,
    listen: tuple[HostPort, TlsFiles] | None,
    cleanup: AsyncExitStack,
) -> None:
    if listen:
        address, tls = listen
        place = socket.create_server(
            (address.host, 0), family=socket.AF_INET6 if ":" in address.host else socket.AF_INET
        )
        port = place.getsockname()[1]
        store.base_url = f"https://{advertise(address, port).text()}"
        context: ssl.SSLContext | None = tls.server_context()
    else:
        place = _bind_socket(Path(directory.place(UPLOAD_SOCKET)), cleanup)
        store.base_url = UPLOAD_URL
        context = None
    uploads = await serve_uploads(store, place, tls=context)
    cleanup.push_async_callback(uploads.close)


def _bind_socket(path: Path, cleanup: AsyncExitStack) -> socket.socket:
    path.unlink(missing_ok=True)  # of a hub that was killed: the lock says that none runs
    place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place.bind(str(path))
    cleanup.callback(path.unlink, missing_ok=True)
    return place


async def _restore(hub: Hub, location: StoreLocation) -> None:
    try:
        await hub.restore(fails_fast=True)  # as `fleetprof capture` submits
    except StoreError as error:
        raise Failure(
            f"cannot read the store {location.address()}: {error}",
            next_step="is it there, and are its credentials in the environment? See docs/local.md",
        ) from None
