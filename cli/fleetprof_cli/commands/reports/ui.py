"""`fleetprof ui`: the web UI over a store, for this machine's user, in the foreground until Ctrl-C.

Guarantees: listens on loopback only; needs no hub, which captures alone need; what it writes is a catalog that may be
deleted at any time.
"""

import asyncio
import os
import signal
import webbrowser

import click

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.log import log_to_terminal
from fleetprof_cli.local.web_ui.process import catalog_url, for_another_browser, serve_web_ui
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import read_store, state_option, store_options
from fleetprof_cli.store_location import StoreLocation


@click.command("ui")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Port on 127.0.0.1; 0 takes any free one  [default: 8770, else any].",
)
@store_options
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@state_option
@click.pass_obj
def command(
    state: StateDirectory, *, port: int | None, store: str | None, s3_endpoint: str, catalog: str | None, no_open: bool
) -> None:
    """Show the fleet of captures and their reports in the browser; Ctrl-C ends it.

    The address that it prints signs in once. Open the port in another browser, and it prints another address.
    """
    location = read_store(state, store, s3_endpoint)
    log_to_terminal()
    os.umask(0o077)
    state.prepare()
    asyncio.run(_serve(state, location, catalog or catalog_url(state, location), port, no_open=no_open))


async def _serve(
    state: StateDirectory, location: StoreLocation, catalog: str, port: int | None, *, no_open: bool
) -> None:
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
            if not no_open and not await asyncio.to_thread(webbrowser.open, address):
                say("no browser could be started: open the address yourself")
            await stop.wait()
    except OSError as error:
        raise Failure(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}",
            next_step="choose another port: --port 0 takes any free one",
        ) from None
