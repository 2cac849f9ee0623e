"""The web UI in a terminal's foreground, as `fleetprof ui` and the end of `fleetprof demo` have it.

Guarantees: listens on loopback only; needs no hub, which captures alone need; ends by Ctrl-C, SIGTERM or SIGHUP; all
that it writes is a catalog, which may be deleted at any time.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.address import forget_page, open_in_browser, warn_of_squatter
from fleetprof_cli.local.web_ui.log import log_to_terminal
from fleetprof_cli.local.web_ui.process import catalog_url, for_another_browser, serve_web_ui
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.store_location import StoreLocation

if TYPE_CHECKING:
    from fleetprof_cli.local.web_ui.opening import Opening


def serve_until_stopped(
    state: StateDirectory,
    location: StoreLocation,
    *,
    catalog: str | None = None,
    port: int | None = None,
    opens_browser: bool,
) -> None:
    """Serves a store and prints the address, which the browser opens as well if `opens_browser`.

    `catalog` None: in the state directory; `port` None: the usual one, else any. Raises Failure.
    """
    log_to_terminal()
    os.umask(0o077)
    state.prepare()
    asyncio.run(_serve(state, location, catalog or catalog_url(state, location), port, opens_browser=opens_browser))


def serve_opened(
    state: StateDirectory,
    paths: Sequence[Path],
    *,
    iteration_range: str = "",
    jobs: int,
    port: int | None = None,
    opens_browser: bool,
) -> None:
    """Analyzes traces and serves their reports, with progress in the page; the store goes with it. Raises Failure."""
    from fleetprof_webui.catalog.database import sqlite_url

    from fleetprof_cli.local.web_ui.opening import make_opening

    log_to_terminal()
    os.umask(0o077)
    state.prepare()
    with (
        make_opening(paths, iteration_range=iteration_range, jobs=jobs) as opening,
        tempfile.TemporaryDirectory(prefix="fleetprof-") as folder,
    ):
        catalog = sqlite_url(Path(folder) / "catalog.sqlite")
        asyncio.run(_serve(state, opening.location, catalog, port, opens_browser=opens_browser, opening=opening))


async def _serve(
    state: StateDirectory,
    location: StoreLocation,
    catalog: str,
    port: int | None,
    *,
    opens_browser: bool,
    opening: "Opening | None" = None,
) -> None:
    from fleetprof_webui.local import USUAL_PORT

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)

    def announce(address: str) -> None:
        say(for_another_browser(address))

    try:
        async with serve_web_ui(
            state, location, catalog=catalog, port=port, announce=announce, opening=opening
        ) as site:
            address = site.make_address("opened" if opening else "")
            what = "what you opened" if opening else f"the captures in {location.address()}"
            say(f"{what}, for you alone: {address}")
            reading = asyncio.create_task(opening.run()) if opening else None
            warn_of_squatter(site.squatter, USUAL_PORT)
            if opens_browser and not await asyncio.to_thread(open_in_browser, state.path, address):
                say("no browser could be started: open the address yourself")
            try:
                await stop.wait()
            finally:
                forget_page(state.path)
                if reading is not None:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
    except OSError as error:
        raise Failure(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}",
            next_step="choose another port: --port 0 takes any free one",
        ) from None
