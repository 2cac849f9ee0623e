"""`fleetprof doctor`: what is wrong with this set-up, and what to do about it.

Guarantees: changes nothing; exit code 1 when something would make a capture fail, else 0.
"""

import asyncio
import json
import os
import shutil
import sys
import time
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from fleetprof_cli.checks import Check, Verdict, check_machine
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.fleet_checks import ask_hub
from fleetprof_cli.messages import make_printable
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.state import StateDirectory

_STYLES: Final = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


@click.command("doctor")
@click.option("--python", metavar="PATH", help="The interpreter that trains  [default: python on PATH].")
@output_option("text", "json", text="Form of the output.")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, python: str | None, output: str) -> None:
    """Find what is wrong with this set-up and say what to do."""
    python = python or shutil.which("python") or shutil.which("python3") or sys.executable
    checks = [*check_machine(state, python, os.environ), *asyncio.run(ask_hub(state, time.time_ns()))]
    failed = any(check.verdict == Verdict.FAIL for check in checks)
    if output == "json":
        click.echo(json.dumps({"ok": not failed, "checks": [check.document() for check in checks]}, indent=2))
    else:
        _print(checks)
    sys.exit(ExitCode.FAILED if failed else ExitCode.DONE)


def _print(checks: list[Check]) -> None:
    console = Console(highlight=False)
    for check in checks:
        found = make_printable(f"{check.name}: {check.found}")
        console.print(Text(f"{check.verdict:<5}", _STYLES[check.verdict]) + Text(found))
        if check.advice:
            console.print(Text(f"     -> {check.advice}"))
