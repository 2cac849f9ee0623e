"""The hub, its upload server and its analyses in one process: what `fleetprof up` is.

Guarantees: whoever reads hub.json finds a hub that answers; stopping leaves no port, no file and no process behind; a
capture that runs meanwhile is taken up again by the next one.
"""

import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fleetprof_api.store.base import StoreError
from fleetprof_api.store.directory import DirectoryStore
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import ServerTls, serve
from fleetprof_operator.hub.uploads import serve_uploads

from fleetprof_cli.analysis import Analyses
from fleetprof_cli.listen import ListenAddress, TlsFiles, join_address
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.run_folder import run_folders
from fleetprof_cli.state import HubRecord, StateDirectory, port_is_free
from fleetprof_cli.store_location import StoreLocation, open_store


@asynccontextmanager
async def run_hub(
    state: StateDirectory, listen: ListenAddress, location: StoreLocation, tls: TlsFiles | None
) -> AsyncIterator[HubRecord]:
    """A hub that answers, until the block ends. Raises Failure when it cannot be started."""
    store = open_store(location, secret=state.upload_secret())
    async with AsyncExitStack() as cleanup:
        try:
            if isinstance(store, DirectoryStore):
                context = tls.server_context() if tls else None
                uploads = await serve_uploads(store, listen.host, state.ports().uploads, tls=context)
                cleanup.push_async_callback(uploads.stop)
                scheme = "https" if tls else "http"
                store.base_url = f"{scheme}://{join_address(listen.advertised_host(), uploads.port)}"
            hub = Hub(store=store, analyze=Analyses(location).analyze)
            cleanup.push_async_callback(hub.close)
            await _restore(hub, location)
            server = await serve(
                hub,
                join_address(listen.host, listen.port or state.ports().hub),
                token=state.token(),
                tls=ServerTls(*tls.pem_pair()) if tls else None,
            )
            cleanup.push_async_callback(server.stop)
        except OSError as error:
            raise Failure(
                f"cannot listen on {join_address(listen.host, listen.port)}: {error.strerror or error}",
                next_step="choose another address: --listen HOST:PORT",
            ) from None
        record = HubRecord(
            address=join_address(listen.advertised_host(), server.port),
            pid=os.getpid(),
            store=location,
            started_unix_ns=time.time_ns(),
            ca_file=str(tls.authority) if tls else "",
        )
        state.publish(record)
        cleanup.callback(state.withdraw)
        yield record


async def _restore(hub: Hub, location: StoreLocation) -> None:
    try:
        await hub.restore()
    except StoreError as error:
        raise Failure(
            f"cannot read the store {location.address()}: {error}",
            next_step="is it there, and are its credentials in the environment? See docs/local.md",
        ) from None


def settle_ports(state: StateDirectory, listen: ListenAddress) -> None:
    """Gives kept ports up that somebody else has taken meanwhile.

    Raises Failure when a job that runs looks for the hub at such a port: on another one, it would never be seen.
    """
    ports = state.ports()
    if not listen.port and not port_is_free(listen.host, ports.hub):
        for folder in run_folders(state):
            if folder.is_alive() and (record := folder.record()):
                raise Failure(
                    f"another program has taken port {ports.hub}, where the job {record.name!r} that runs "
                    f"(`fleetprof run`, pid {record.pid}) looks for the hub",
                    next_step="end that program, or give this hub another state directory and start the job anew there",
                )
        state.renew_ports()
        say("another program has taken the port of the last `fleetprof up`; this one takes another and keeps it")
    elif not port_is_free(listen.host, ports.uploads):
        state.renew_ports(hub=ports.hub)  # nobody remembers this one: every grant names it
