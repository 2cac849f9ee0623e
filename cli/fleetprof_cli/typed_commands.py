"""Commands in a next step as the person who reads it must type them: by this program's path, with this `--state`.

Guarantees: a text without a command of ours stays as it is; only a state directory that was named on this command line
is repeated.
"""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

_PROGRAM: Final = "fleetprof"
_COMMAND: Final = re.compile(r"(?<![\w./-])(?<!kubectl )fleetprof (?P<name>[a-z]+)")
_WITHOUT_STATE: Final = ("demo", "analyze", "sweep", "inject", "completion")


def name_program() -> str:
    """This program as the user may type it: by its name where PATH leads to it, else by its path."""
    here = Path(sys.argv[0]).absolute()
    if shutil.which(_PROGRAM) == str(here) or here.name != _PROGRAM or not os.access(here, os.X_OK):
        return _PROGRAM
    return shlex.quote(os.path.relpath(here))


def as_typed(text: str) -> str:
    """The text with each `fleetprof COMMAND` in it as this person types it."""
    state = "" if "--state" in text else _say_state()
    program = name_program()

    def spell(found: re.Match[str]) -> str:
        own = "" if found["name"] in _WITHOUT_STATE else state
        return f"{program} {found['name']}{own}"

    return _COMMAND.sub(spell, text)


def _say_state() -> str:
    context = click.get_current_context(silent=True)
    if context is None or context.get_parameter_source("state") is not ParameterSource.COMMANDLINE:
        return ""
    path = getattr(context.obj, "path", None)
    return "" if path is None else f" --state {shlex.quote(str(path))}"
