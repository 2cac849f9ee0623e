"""`fleetprof up`: the control plane of local mode, in the foreground until Ctrl-C, for those who want it to stay.

Guarantees: one per state directory; nothing is on the network unless asked, and then over TLS; what it writes is for
its user alone; a capture that is under way when it stops, or is killed, is finished by the next `up`.
"""

import asyncio
from pathlib import Path

import click
from fleetprof_api.process.address import HostPort, is_loopback, parse_host_port

from fleetprof_cli.doctor.check import Verdict
from fleetprof_cli.doctor.checks import judge_store
from fleetprof_cli.local import hub_lock
from fleetprof_cli.local.leftovers import send_leftovers, tidy_up
from fleetprof_cli.local.network import TlsFiles, own_certificate
from fleetprof_cli.local.service import enter_service, stop_signals
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.process import announce_web_ui
from fleetprof_cli.messages import say
from fleetprof_cli.options import state_option
from fleetprof_cli.store_location import StoreLocation, parse_store


def _listen(_context: click.Context, _parameter: click.Parameter, value: str | None) -> HostPort | None:
    try:
        return parse_host_port(value) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _loopback(context: click.Context, parameter: click.Parameter, value: str | None) -> HostPort | None:
    address = _listen(context, parameter, value)
    if address is not None and not is_loopback(address.text()):
        raise click.BadParameter(f"{value}: /metrics asks nobody for a token, so it is served on loopback only")
    return address


_PEM = click.Path(exists=True, dir_okay=False, readable=True, resolve_path=True, path_type=Path)


@click.command("up")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=_listen,
    help="Listen on the network, over TLS, for jobs on other machines. Port 0 takes any free one "
    "(default: a socket in the state directory).",
)
@click.option("--store", metavar="DIR|s3://BUCKET/PREFIX", help="Where results go (default: store/ in --state).")
@click.option("--s3-endpoint", metavar="URL", default="", help="An S3 server that is not Amazon's.")
@click.option(
    "--tls-cert",
    metavar="FILE",
    type=_PEM,
    help="With --listen: PEM certificate chain (default: a new self-signed one).",
)
@click.option("--tls-key", metavar="FILE", type=_PEM, help="Its PEM key.")
@click.option(
    "--tls-ca", metavar="FILE", type=_PEM, help="Authority that clients check it with (default: --tls-cert itself)."
)
@click.option("--no-ui", is_flag=True, help="Leave the web UI out.")
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    callback=_loopback,
    help="Serve /metrics for Prometheus there, a loopback address. Every user of this machine can read it.",
)
@state_option
@click.pass_obj
def command(
    state: StateDirectory,
    *,
    listen: HostPort | None,
    store: str | None,
    s3_endpoint: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    no_ui: bool,
    metrics: HostPort | None,
) -> None:
    """Start the hub, the object store, the analysis and the web UI on this machine, to stay. Ctrl-C ends them.

    Jobs started with `fleetprof run` find it through the state directory; you can start them before or after it. It
    takes over from a hub that a job has started, and does not end with the jobs.
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    tls = TlsFiles(tls_cert, tls_key, tls_ca or tls_cert) if tls_cert and tls_key else None
    if tls and listen is None:
        raise click.UsageError("--tls-cert needs --listen HOST:PORT: the socket in the state directory needs no TLS")
    if tls:
        try:
            tls.server_context()
        except OSError as error:
            raise click.UsageError(f"--tls-cert and --tls-key cannot be used together: {error}") from None
    try:
        location = parse_store(store, s3_endpoint) if store else StoreLocation(directory=str(state.default_store))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--store") from None
    enter_service()
    state.prepare()
    with hub_lock.hold(state):
        at = (listen, tls or own_certificate(state, listen)) if listen else None
        asyncio.run(_serve(state, at, location, with_ui=not no_ui, metrics=metrics))


async def _serve(
    state: StateDirectory,
    listen: tuple[HostPort, TlsFiles] | None,
    location: StoreLocation,
    *,
    with_ui: bool,
    metrics: HostPort | None,
) -> None:
    from fleetprof_cli.local.hub import run_hub

    stop = stop_signals()
    async with run_hub(state, listen, location, metrics=metrics) as (record, _hub):
        say(f"the hub answers at {record.address}; results go to {location.address()}")
        for check in judge_store(location):
            if check.verdict is Verdict.WARN:
                say(f"{check.found}; {check.advice}")
        say("start a job in another terminal: fleetprof run -- torchrun train.py; then: fleetprof capture")
        beside = [asyncio.create_task(send_leftovers(state))]
        if with_ui:
            beside.append(asyncio.create_task(announce_web_ui(state, location)))
        await stop.wait()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        tidy_up(state)
        say("stopping; jobs go on, and the next `fleetprof up` finishes a capture that is under way")
