"""The report in the terminal: the analyzer's text, at the width that there is."""

import shutil

import click
from fleetprof_analyzer.views.terminal import render_text
from fleetprof_api.report import Report


def print_report(report: Report) -> None:
    """Prints the report in words to stdout, plain when stdout is no terminal."""
    click.echo(render_text(report, min(shutil.get_terminal_size((100, 24)).columns, 140)).rstrip("\n"))
