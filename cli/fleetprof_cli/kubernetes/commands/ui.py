"""`kubectl fleetprof ui`: the cluster's web UI in the browser, until Ctrl-C."""

import asyncio
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import click

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace
from fleetprof_cli.kubernetes.figures import SYSTEM_NAMESPACE
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.kubernetes.web_ui import SERVICE, find_token, reach_web_ui
from fleetprof_cli.local.web_ui.address import forget_page, open_in_browser
from fleetprof_cli.messages import Failure, say


@click.command("ui")
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@click.option(
    "--service-account",
    "account",
    metavar="NAME",
    default="",
    help="Come as this account of the namespace, whose token you may ask for: for a kubeconfig without a token.",
)
@click.option(
    "--system-namespace", metavar="NAME", default=SYSTEM_NAMESPACE, show_default=True, help="Namespace of the web UI."
)
@click.option("--service", metavar="NAME", default=SERVICE, show_default=True, help="The web UI's Service.")
@place_options
def command(no_open: bool, account: str, system_namespace: str, service: str, **flags: Any) -> None:
    """Open the web UI of the cluster with your own rights. Ctrl-C ends it.

    A port of 127.0.0.1 is forwarded by kubectl, and your Kubernetes token says who you are. The address signs in once.
    """
    place = read_place(flags)
    if place.as_user:
        raise Failure(
            "--as: the web UI shows what you may read, not what somebody else may",
            next_step="leave it out, or bring a token of theirs: --service-account",
            code=ExitCode.INVALID,
        )
    os.umask(0o077)
    asyncio.run(_serve(place, account, system_namespace, service, opens_browser=not no_open))


async def _serve(place: ClusterPlace, account: str, namespace: str, service: str, *, opens_browser: bool) -> None:
    token = await find_token(place, account)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    with (
        tempfile.TemporaryDirectory(prefix="fleetprof-ui-") as made,
        reach_web_ui(place, namespace, service, token) as address,
    ):
        folder = Path(made)
        say(f"the cluster's web UI, for you alone: {address}")
        if opens_browser and not await asyncio.to_thread(open_in_browser, folder, address):
            say("no browser could be started: open the address yourself")
        try:
            await stop.wait()
        finally:
            forget_page(folder)
