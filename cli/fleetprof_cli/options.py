"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from fleetprof_store.local import default_state_path

from fleetprof_cli.local.state import StateDirectory


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
        help="State directory; use the same one for all commands of a job.",
    )(command)


def output_option(*forms: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `-o/--output` with `forms`, the first one being the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help=text)
