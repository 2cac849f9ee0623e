"""`fleetprof ui`: the web UI over a store, or over traces that somebody has, in the foreground until Ctrl-C."""

from pathlib import Path

import click

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.foreground import serve_opened, serve_until_stopped
from fleetprof_cli.messages import Failure
from fleetprof_cli.options import count_processors, read_store, state_option, store_options
from fleetprof_cli.ranges import IntegerRange


@click.command("ui")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]...")
@click.option(
    "--port",
    metavar="PORT",
    type=IntegerRange(0, 65535),
    help="Port on 127.0.0.1. 0 takes any free one (default: 8770, else any).",
)
@store_options
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@state_option
@click.pass_obj
def command(
    state: StateDirectory,
    *,
    paths: tuple[Path, ...],
    port: int | None,
    store: str | None,
    s3_endpoint: str,
    catalog: str | None,
    no_open: bool,
) -> None:
    """Show the fleet of captures and their reports in the browser. Ctrl-C ends it.

    With PATHs it shows what you have: traces (*.json, *.json.gz), folders of them, reports (report.json).
    Nothing of them leaves this machine.

    The address that it prints signs in once. Open the port in another browser, and it prints another address.
    """
    if paths:
        if store or catalog:
            raise Failure("traces to open, or a store; not both", code=ExitCode.INVALID)
        serve_opened(state, paths, jobs=count_processors(), port=port, opens_browser=not no_open)
        return
    location = read_store(state, store, s3_endpoint)
    serve_until_stopped(state, location, catalog=catalog, port=port, opens_browser=not no_open)
