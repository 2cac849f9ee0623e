"""`--modules [DEPTH]`, `--lines` and `-o sarif` of the commands that show a report: a part of it in place of all."""

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Final

import click
import msgspec
from fleetprof_analyzer.views.sarif import render_sarif
from fleetprof_analyzer.views.terminal.lines import render_lines
from fleetprof_analyzer.views.terminal.modules import cut_modules, render_modules
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.report import Report

from fleetprof_cli.messages import Failure
from fleetprof_cli.ranges import IntegerRange
from fleetprof_cli.terminal.reports import print_json
from fleetprof_cli.terminal.streams import fit

_USUAL_DEPTH: Final = 3
_DEEPEST: Final = 64


def modules_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds it."""
    return click.option(
        "--modules",
        metavar="[DEPTH]",
        is_flag=False,
        flag_value=_USUAL_DEPTH,
        type=IntegerRange(1, _DEEPEST),
        help=f"Only the modules of the model, so many levels ({_USUAL_DEPTH} where nothing follows); they need "
        "`collect: [ModuleTree]`.",
    )(command)


def lines_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds it."""
    return click.option(
        "--lines",
        is_flag=True,
        help="Only the lines of code that call modules, with time and memory. They need `collect: [ModuleTree]`.",
    )(command)


def show_lines(report: Report) -> None:
    """Prints the lines in words. Raises Failure where the report has no modules."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 140)
    click.echo(fit(render_lines(_find_tree(report), width).rstrip("\n")))


def show_sarif(report: Report) -> None:
    """Prints the report's lines as SARIF, with names of files from the current folder where they lie in it."""
    print_json(render_sarif(report, PurePosixPath(Path.cwd())))


def show_modules(report: Report, depth: int, output: str) -> None:
    """Prints the tree in words, or as JSON. Raises Failure where the report has none."""
    tree = cut_modules(_find_tree(report), depth)
    if output == "json":
        print_json(msgspec.json.format(msgspec.json.encode(tree), indent=1) + b"\n")
        return
    width = min(shutil.get_terminal_size((100, 24)).columns, 140)
    click.echo(fit(render_modules(tree, width).rstrip("\n")))


def _find_tree(report: Report) -> ModuleTree:
    if report.module_tree is None:
        raise Failure(
            "the report has no modules",
            next_step="capture iterations with `--modules`; the job needs the agent",
        )
    return report.module_tree
