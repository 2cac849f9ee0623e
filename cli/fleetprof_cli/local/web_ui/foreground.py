"""The web UI in a terminal's foreground, as `fleetprof ui` and the end of `fleetprof demo` have it.

Guarantees: listens on loopback only; needs no hub, which captures alone need; ends by Ctrl-C, SIGTERM or SIGHUP; all
that it writes is a catalog, which may be deleted at any time.
"""

import asyncio
import os
import signal

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.address import forget_page, open_in_browser, warn_of_squatter
from fleetprof_cli.local.web_ui.log import log_to_terminal
from fleetprof_cli.local.web_ui.process import catalog_url, for_another_browser, serve_web_ui
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.store_location import StoreLocation


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


async def _serve(
    state: StateDirectory, location: StoreLocation, catalog: str, port: int | None, *, opens_browser: bool
) -> None:
    from fleetprof_webui.local import USUAL_PORT

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)

    def announce(address: str) -> None:
        say(for_another_browser(address))

    try:
        async with serve_web_ui(state, location, catalog=catalog, port=port, announce=announce) as site:
            address = site.make_address()
            say(f"the captures in {location.address()}, for you alone: {address}")
            warn_of_squatter(site.squatter, USUAL_PORT)
            if opens_browser and not await asyncio.to_thread(open_in_browser, state.path, address):
                say("no browser could be started: open the address yourself")
            try:
                await stop.wait()
            finally:
                forget_page(state.path)
    except OSError as error:
        raise Failure(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}",
            next_step="choose another port: --port 0 takes any free one",
        ) from None
