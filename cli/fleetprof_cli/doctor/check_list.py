"""The findings of `doctor` on stdout."""

import json
from collections.abc import Sequence
from typing import Final

import click
from fleetprof_api.plain_text import make_printable
from rich.console import Console
from rich.text import Text

from fleetprof_cli.doctor.check import Check, Verdict

_STYLES: Final = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


def print_checks(checks: Sequence[Check], form: str) -> None:
    """As `json`, or as `text`: what was found, and below it what to do."""
    if form == "json":
        failed = any(check.verdict == Verdict.FAIL for check in checks)
        click.echo(json.dumps({"ok": not failed, "checks": [check.document() for check in checks]}, indent=2))
        return
    console = Console(highlight=False)
    for check in checks:
        found = make_printable(f"{check.name}: {check.found}")
        console.print(Text(f"{check.verdict:<5}", _STYLES[check.verdict]) + Text(found), soft_wrap=True)
        if check.advice:
            console.print(Text(f"     -> {make_printable(check.advice)}"), soft_wrap=True)
