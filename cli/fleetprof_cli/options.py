"""Options that several commands share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from fleetprof_store.local import default_state_path

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.store_location import StoreLocation, parse_store


def _set_state(context: click.Context, _parameter: click.Parameter, value: Path) -> None:
    context.obj = StateDirectory(value)


def state_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--state`; the command gets the StateDirectory with `click.pass_obj`."""
    return _add_state(click.Path(file_okay=False, path_type=Path), command)


def unchecked_state_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that does its work whatever stands there."""
    return _add_state(click.Path(path_type=Path), command)


def _add_state(kind: click.Path, command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--state",
        metavar="DIR",
        type=kind,
        default=default_state_path,
        show_default="$FLEETPROF_STATE, else ~/.local/state/fleetprof",
        expose_value=False,
        callback=_set_state,
        help="State directory. Use the same one for all commands of a job.",
    )(command)


def count_processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def output_option(*forms: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `-o/--output` with `forms`, the first one being the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help=text)


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say which store is shown, and where its catalog lies."""
    options = (
        click.option(
            "--store",
            metavar="DIR|s3://BUCKET/PREFIX",
            help="Where the captures are (default: that of the last `up`).",
        ),
        click.option("--s3-endpoint", metavar="URL", default="", help="An S3 server that is not Amazon's."),
        click.option(
            "--catalog",
            metavar="URL",
            envvar="FLEETPROF_CATALOG",
            help="sqlite:///FILE or postgresql://USER@HOST/NAME. With a password better as $FLEETPROF_CATALOG "
            "(default: a file in the state directory).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_store(state: StateDirectory, store: str | None, s3_endpoint: str) -> StoreLocation:
    """The store that `store_options` mean. Raises BadParameter."""
    if not store:
        return state.store()
    try:
        return parse_store(store, s3_endpoint)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--store") from None
