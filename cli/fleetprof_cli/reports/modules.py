"""`--modules [DEPTH]` of the commands that show a report: the tree of its modules in place of the report."""

import shutil
from collections.abc import Callable
from typing import Any, Final

import click
import msgspec
from fleetprof_analyzer.views.terminal.modules import cut_modules, render_modules
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


def show_modules(report: Report, depth: int, output: str) -> None:
    """Prints the tree in words, or as JSON. Raises Failure where the report has none."""
    if report.module_tree is None:
        raise Failure(
            "the report has no modules",
            next_step="capture iterations with `--collect ModuleTree`; the job needs the agent",
        )
    tree = cut_modules(report.module_tree, depth)
    if output == "json":
        print_json(msgspec.json.format(msgspec.json.encode(tree), indent=1) + b"\n")
        return
    width = min(shutil.get_terminal_size((100, 24)).columns, 140)
    click.echo(fit(render_modules(tree, width).rstrip("\n")))
