"""The common part of `fleetprof diff` and `kubectl fleetprof diff`: options, printing, and the exit code for CI.

Guarantees: `-o json` prints one document that follows diff.v1.schema.json; a gate that cannot judge fails.
"""

import shutil
from collections.abc import Callable
from typing import Any, Final

import click
from fleetprof_analyzer.assembly.diff import compare
from fleetprof_analyzer.comparison.comparison import MINIMUM_EFFECT
from fleetprof_analyzer.views.terminal.diff import render_diff
from fleetprof_api.report.diff import Diff, write_diff
from fleetprof_api.report.report import Report, UnreadableReport, read_report

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.reports import print_json
from fleetprof_cli.terminal.streams import fit

_LEAST_PERCENT: Final = 100 * MINIMUM_EFFECT


def gate_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--fail-on-regression`."""
    return click.option(
        "--fail-on-regression",
        "fail_above",
        metavar="PERCENT",
        type=click.FloatRange(min=_LEAST_PERCENT),
        help=f"Exit with {ExitCode.REGRESSED.value} when iterations take that much longer, or more; at least "
        f"{_LEAST_PERCENT:g}.",
    )(command)


def parse_report(data: bytes, name: str) -> Report:
    """A report from its bytes. Raises Failure."""
    try:
        return read_report(data)
    except UnreadableReport as error:
        raise Failure(f"{name}: {error}", code=ExitCode.INVALID) from None


def show_diff(before: Report, after: Report, output: str, fail_above: float | None) -> None:
    """Prints the comparison. Raises Failure where there is none, and where the gate fails."""
    diff = compare(before, after)
    if output == "json":
        print_json(write_diff(diff))
    else:
        click.echo(fit(render_diff(diff, min(shutil.get_terminal_size((100, 24)).columns, 140))), nl=False)
    if not diff.comparable:
        raise Failure("the two cannot be compared", code=ExitCode.NOT_COMPARABLE)
    if fail_above is not None:
        _judge(diff, fail_above)


def _judge(diff: Diff, fail_above: float) -> None:
    if diff.verdict == "not_judged":
        raise Failure(
            "too few iterations to tell a regression from noise",
            next_step="capture more of them: --iterations 10",
            code=ExitCode.NOT_COMPARABLE,
        )
    percent = 100 * (diff.change or 0.0)
    if diff.verdict == "slower" and percent >= fail_above:
        raise Failure(f"iterations take {percent:.1f} % longer; {fail_above:g} % are allowed", code=ExitCode.REGRESSED)
