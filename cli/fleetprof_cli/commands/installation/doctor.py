"""`fleetprof doctor`: what is wrong with this set-up, and what to do about it.

Guarantees: changes nothing; exit code 1 when something would make a capture fail, else 0.
"""

import asyncio
import importlib.util
import os
import shutil
import sys
import time

import click

from fleetprof_cli.doctor.check_list import print_checks
from fleetprof_cli.doctor.checks import Verdict, check_machine
from fleetprof_cli.doctor.fleet_checks import ask_hub
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.options import output_option, state_option


@click.command("doctor")
@click.option(
    "--python",
    metavar="PATH",
    help="The interpreter that trains  [default: that of fleetprof if it has PyTorch, else python on PATH].",
)
@output_option("text", "json", text="Form of the output.")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, python: str | None, output: str) -> None:
    """Find what is wrong with this set-up and say what to do."""
    python = python or choose_interpreter()
    checks = [*check_machine(state, python, os.environ), *asyncio.run(ask_hub(state, time.time_ns()))]
    failed = any(check.verdict == Verdict.FAIL for check in checks)
    print_checks(checks, output)
    sys.exit(ExitCode.FAILED if failed else ExitCode.DONE)


def choose_interpreter() -> str:
    """The interpreter that trains, as a guess.

    Who calls .venv/bin/fleetprof without activating the environment trains there, and not with the python of PATH.
    """
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python") or shutil.which("python3") or sys.executable
