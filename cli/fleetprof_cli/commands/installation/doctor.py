"""`fleetprof doctor`: what is wrong with this set-up, and what to do about it.

Guarantees: changes nothing; exit code 1 when something would make a capture fail, else 0.
"""

import asyncio
import os
import sys
import time

import click

from fleetprof_cli.doctor.check import Verdict
from fleetprof_cli.doctor.check_list import print_checks
from fleetprof_cli.doctor.checks import check_machine
from fleetprof_cli.doctor.fleet_checks import ask_hub
from fleetprof_cli.doctor.interpreter import (
    choose_interpreter,
    find_interpreters,
    find_torch,
    judge_interpreter,
    judge_others,
    probe_interpreter,
)
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.options import output_option, state_option


@click.command("doctor")
@click.option(
    "--python",
    metavar="PATH",
    help="The interpreter that trains (default: of the active environment, fleetprof's own and python on PATH the "
    "first that has PyTorch).",
)
@output_option("text", "json", text="Form of the output.")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, python: str | None, output: str) -> None:
    """Find what is wrong with this set-up and say what to do."""
    versions = {
        each: find_torch(each).get("torch", "") for each in ([python] if python else find_interpreters(os.environ))
    }
    python = choose_interpreter(versions)
    checks = [
        *judge_interpreter(python, probe_interpreter(python)),
        *judge_others(python, versions),
        *check_machine(state, os.environ),
        *asyncio.run(ask_hub(state, time.time_ns())),
    ]
    failed = any(check.verdict == Verdict.FAIL for check in checks)
    print_checks(checks, output)
    sys.exit(ExitCode.FAILED if failed else ExitCode.DONE)
