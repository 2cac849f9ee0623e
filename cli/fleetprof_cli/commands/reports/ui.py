"""`fleetprof ui`: the web UI over a store, for this machine's user, in the foreground until Ctrl-C."""

import click

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.foreground import serve_until_stopped
from fleetprof_cli.options import read_store, state_option, store_options
from fleetprof_cli.ranges import IntegerRange


@click.command("ui")
@click.option(
    "--port",
    metavar="PORT",
    type=IntegerRange(0, 65535),
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
    serve_until_stopped(state, location, catalog=catalog, port=port, opens_browser=not no_open)
