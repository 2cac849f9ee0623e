"""The web UI of local mode: `fleetprof ui` serves it itself, `fleetprof up` in a process of its own.

Of its own, because reading a large report must not keep the hub from answering while trainers wait for their orders.
Guarantees: that process ends with the one that started it; it prints addresses to stdout, one per line: the
first at its start, another when a browser without a session comes and no printed address is unused.
Run as a module it is that process: `python -m fleetprof_cli.local.web_ui.process STATE STORE_JSON`.
"""

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from fleetprof_api.process.import_path import own_environment

from fleetprof_cli.local.child import child_command
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.address import warn_of_squatter
from fleetprof_cli.local.web_ui.log import log_to_terminal
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.store_location import StoreLocation, open_store

if TYPE_CHECKING:
    from fleetprof_webui.local import LocalSite

    from fleetprof_cli.local.web_ui.opening import Opening

_STARTS_WITHIN_S: Final = 60.0
_ENDS_WITHIN_S: Final = 10.0
_LOOK_AT_DIRECTORY_S: Final = 2.0
_LOOK_AT_BUCKET_S: Final = 30.0


def catalog_url(state: StateDirectory, location: StoreLocation) -> str:
    """The address of a store's catalog unless a user says otherwise: a file of the state directory."""
    from fleetprof_webui.catalog.database import sqlite_url

    digest = hashlib.blake2b(location.address().encode(), digest_size=6).hexdigest()
    return sqlite_url(state.path / f"catalog-{digest}.sqlite")


@asynccontextmanager
async def serve_web_ui(
    state: StateDirectory,
    location: StoreLocation,
    *,
    catalog: str,
    port: int | None,
    announce: Callable[[str], None],
    opening: "Opening | None" = None,
) -> "AsyncIterator[LocalSite]":
    """The web UI over a store until the block ends; captures are asked of the hub that writes to it.

    `announce` is given each further address that signs in; `opening` is what is read into the store. Raises Failure.
    """
    from fleetprof_webui.catalog.database import CatalogUnusable
    from fleetprof_webui.local import serve_locally

    from fleetprof_cli.local.web_ui.hub_door import HubDoor

    door = HubDoor(state) if location == state.store() else None
    look_every_s = _LOOK_AT_DIRECTORY_S if location.directory else _LOOK_AT_BUCKET_S
    try:
        async with serve_locally(
            open_store(location),
            catalog,
            port=port,
            captures=door,
            look_every_s=look_every_s,
            announce=announce,
            opened=None if opening is None else opening.page,
        ) as site:
            yield site
    except CatalogUnusable as error:
        raise Failure(str(error)) from None


async def announce_web_ui(state: StateDirectory, location: StoreLocation) -> None:
    """Keeps the web UI in a process of its own until this task is cancelled; says its address, or why there is none."""
    words = (str(state.path), msgspec.json.encode(location).decode())
    process = await asyncio.create_subprocess_exec(
        *child_command("fleetprof_cli.local.web_ui.process", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env=own_environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_STARTS_WITHIN_S):
            address = (await process.stdout.readline()).decode().strip()
        if address:
            say(f"the web UI, for you alone: {address}")
        while line := await process.stdout.readline():
            say(for_another_browser(line.decode().strip()))
        await process.wait()
        say(f"the web UI has ended with code {process.returncode}; the hub goes on; start it again: fleetprof ui")
    except TimeoutError:
        say(f"the web UI did not start within {_STARTS_WITHIN_S:.0f} s; the hub goes on; try: fleetprof ui")
    finally:
        await _end(process)


def for_another_browser(address: str) -> str:
    """The sentence that a terminal says with a further address."""
    return f"for another browser, once: {address}"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _serve(state: StateDirectory, location: StoreLocation) -> None:
    from fleetprof_webui.local import USUAL_PORT

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    def announce(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    catalog = catalog_url(state, location)
    async with serve_web_ui(state, location, catalog=catalog, port=None, announce=announce) as site:
        announce(site.make_address())
        warn_of_squatter(site.squatter, USUAL_PORT)
        await stop.wait()


def main() -> None:
    """Serves in this process."""
    path, location = sys.argv[1:]
    log_to_terminal()
    os.umask(0o077)
    try:
        asyncio.run(_serve(StateDirectory(Path(path)), msgspec.json.decode(location, type=StoreLocation)))
    except Failure as error:
        error.show()
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
