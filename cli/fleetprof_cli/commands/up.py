"""`fleetprof up`: the control plane of local mode, in the foreground until Ctrl-C.

Guarantees: one per state directory; nothing but loopback without TLS; a capture that is under way when it stops, or is
killed, is finished by the next `up`.
"""

import asyncio
import logging
import signal
from pathlib import Path

import click

from fleetprof_cli.leftovers import send_leftovers
from fleetprof_cli.listen import ListenAddress, TlsFiles, parse_listen
from fleetprof_cli.local_hub import run_hub, settle_ports
from fleetprof_cli.messages import say
from fleetprof_cli.options import state_option
from fleetprof_cli.state import StateDirectory
from fleetprof_cli.store_location import StoreLocation, parse_store


def _listen(_context: click.Context, _parameter: click.Parameter, value: str) -> ListenAddress:
    try:
        return parse_listen(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_PEM = click.Path(exists=True, dir_okay=False, readable=True, resolve_path=True, path_type=Path)


@click.command("up")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    callback=_listen,
    help="Where sidecars and commands find the hub; port 0 takes one and keeps it for the next time.",
)
@click.option("--store", metavar="DIR|s3://BUCKET/PREFIX", help="Where results go  [default: store/ in the state].")
@click.option("--s3-endpoint", metavar="URL", default="", help="An S3 server that is not Amazon's.")
@click.option("--tls-cert", metavar="FILE", type=_PEM, help="PEM certificate chain of this server.")
@click.option("--tls-key", metavar="FILE", type=_PEM, help="Its PEM key.")
@click.option("--tls-ca", metavar="FILE", type=_PEM, help="What clients check it with  [default: --tls-cert itself].")
@state_option
@click.pass_obj
def command(
    state: StateDirectory,
    *,
    listen: ListenAddress,
    store: str | None,
    s3_endpoint: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
) -> None:
    """Start the hub, the object store and the analysis on this machine; Ctrl-C ends them.

    Jobs started with `fleetprof run` find it by the state directory, whether they were started before or after it.
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    tls = TlsFiles(tls_cert, tls_key, tls_ca or tls_cert) if tls_cert and tls_key else None
    if tls is None and not listen.is_loopback():
        raise click.UsageError(
            f"--listen {listen.host} can be reached from other machines, so the token and the traces would cross the "
            "network in plain text: give --tls-cert and --tls-key, or listen on 127.0.0.1 (docs/security.md)"
        )
    if tls:
        try:
            tls.server_context()
        except OSError as error:
            raise click.UsageError(f"--tls-cert and --tls-key cannot be used together: {error}") from None
    try:
        location = parse_store(store, s3_endpoint) if store else StoreLocation(directory=str(state.default_store))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--store") from None
    logging.basicConfig(level=logging.INFO, format="fleetprof: %(message)s")
    state.prepare()
    with state.lock():
        settle_ports(state, listen)
        asyncio.run(_serve(state, listen, location, tls))


async def _serve(state: StateDirectory, listen: ListenAddress, location: StoreLocation, tls: TlsFiles | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    async with run_hub(state, listen, location, tls) as record:
        say(f"the hub answers at {record.address}; results go to {location.address()}")
        say("start a job in another terminal: fleetprof run -- torchrun train.py; then: fleetprof capture")
        sending = asyncio.create_task(send_leftovers(state, record))
        await stop.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        say("stopping; jobs go on, and a capture that is under way is finished by the next `fleetprof up`")
