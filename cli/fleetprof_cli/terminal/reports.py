"""Reports on stdout: the analyzer's text at the width that there is, and JSON that a terminal cannot obey."""

import shutil
import sys

import click
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.plain_text import escape_json
from fleetprof_api.report.report import Report

from fleetprof_cli.terminal.streams import fit


def print_report(report: Report) -> None:
    """Prints the report in words to stdout, plain when stdout is no terminal."""
    click.echo(fit(render_text(report, min(shutil.get_terminal_size((100, 24)).columns, 140)).rstrip("\n")))


def print_json(document: bytes) -> None:
    """Prints a JSON document as it is, but for what a terminal might obey: that is escaped, and means the same."""
    sys.stdout.buffer.write(escape_json(document.decode("utf-8", "replace")).encode())
    sys.stdout.buffer.flush()
