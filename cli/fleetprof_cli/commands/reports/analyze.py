"""`fleetprof analyze`: a report of traces that somebody already has; neither hub nor store is needed.

Guarantees: reads only; `-o json` prints the same report.json that a capture gets; one damaged trace is named in the
report and spoils no other. With `--trace-window` a cut of the traces is written instead.
"""

import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
from fleetprof_analyzer.capture.folder import NothingToAnalyze, SeveralJobs, analyze_directory, find_traces
from fleetprof_analyzer.capture.memory import keep_freed_memory
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.timeline.trace_window import cut_directory
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.kernel_class import KernelClass
from fleetprof_api.report.report import Report, write_report

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.web_ui.foreground import serve_opened
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import count_processors, output_option, state_option
from fleetprof_cli.ranges import IntegerRange
from fleetprof_cli.reports.tables import export_tables, tables_option
from fleetprof_cli.reports.trace_window import read_wanted, window_options, write_cut
from fleetprof_cli.terminal.reading_progress import show_reading
from fleetprof_cli.terminal.reports import print_json, print_report

_MOST_PATHS: Final = 4


@click.command("analyze")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="DIR|FILE...")
@output_option("text", "json", "html", text="Form of the report.")
@click.option(
    "--out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file."
)
@click.option(
    "--classes",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Classes of kernels that the built-in table does not know: a YAML list of {pattern, class}.",
)
@click.option(
    "--iteration-range",
    metavar="NAME",
    default="",
    help="Name of the range (torch.profiler.record_function) that begins each iteration, for jobs without an optimizer "
    "(default: optimizer steps, else profiler steps).",
)
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=IntegerRange(min=1),
    default=count_processors,
    show_default="as many as processors",
    help="Processes that read traces.",
)
@click.option(
    "--open", "opens", is_flag=True, help="Show report and timeline in the browser, as `fleetprof ui PATH` does."
)
@tables_option
@window_options
@state_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    paths: tuple[Path, ...],
    output: str,
    out: Path | None,
    classes: Path | None,
    iteration_range: str,
    jobs: int,
    opens: bool,
    tables: Path | None,
    **_: Any,
) -> None:
    """Analyse traces that you already have: one folder, or the files of one job (*.json, *.json.gz)."""
    wanted = read_wanted(context, "output", "tables")
    if opens:
        if wanted is not None or out is not None or tables is not None or classes is not None or output != "text":
            raise Failure(
                "--open shows the report in the browser: leave out --out, -o, --tables, --classes and --trace-window",
                code=ExitCode.INVALID,
            )
        serve_opened(context.obj, paths, iteration_range=iteration_range, jobs=jobs, opens_browser=True)
        return
    kernel_classes = () if classes is None else _read_classes(classes)
    keep_freed_memory()
    try:
        with _folder(paths) as folder, show_reading() as progress:
            if wanted is not None:
                write_cut(
                    out,
                    lambda write: cut_directory(
                        folder, wanted, write, progress=progress, kernel_classes=kernel_classes, jobs=jobs
                    ),
                )
                return
            report = analyze_directory(
                folder, progress=progress, kernel_classes=kernel_classes, iteration_range=iteration_range, jobs=jobs
            )
    except SeveralJobs as error:
        raise Failure(str(error), next_step="or name its files: fleetprof analyze FILE…") from None
    except (NothingToAnalyze, OSError) as error:
        raise Failure(f"no trace could be read: {error}") from None
    if output == "text" and out is None:
        print_report(report)
    else:
        data = _render(report, output, paths, out)
        if out is None and output == "json":
            print_json(data)
        elif out is None:
            click.echo(data, nl=False)
        else:
            try:
                out.write_bytes(data)
            except OSError as error:
                raise Failure(f"cannot write {out}: {error.strerror}") from None
            say(f"wrote {out}")
    if tables is not None:
        export_tables(report, tables)
    if iteration_range and report.ranks and not any(rank.iterations for rank in report.ranks):
        raise Failure(
            f"no rank has two ranges named {iteration_range!r}: the report has no iterations",
            next_step="give the name as the trace has it, for example: --iteration-range execute_model",
            code=ExitCode.INVALID,
        )
    if not report.ranks:
        raise Failure("no trace could be read: the report says why, file by file")


def _read_classes(file: Path) -> tuple[KernelClass, ...]:
    from fleetprof_api.request import InvalidRequest, load_kernel_classes

    try:
        return load_kernel_classes(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {file}: {error}") from None
    except InvalidRequest as error:
        raise Failure(
            f"{file} holds no classes of kernels: " + "; ".join(error.problems),
            next_step="write a list such as: - {pattern: my_all_reduce, class: Communication}",
            code=ExitCode.INVALID,
        ) from None


def _way_to(paths: tuple[Path, ...], out: Path | None) -> str | None:
    """From a page to the traces that it links; None where they are not in one folder, or the page in no file."""
    if out is None or len(paths) != 1 or not paths[0].is_dir():
        return None
    return Path(os.path.relpath(paths[0], out.parent)).as_posix()


@contextmanager
def _folder(paths: tuple[Path, ...]) -> Iterator[Path]:
    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise Failure("one folder, or files; not both", code=ExitCode.INVALID)
    if folders:
        yield folders[0]
        return
    # The analyzer reads folders: one with links to exactly these files is the same thing.
    with tempfile.TemporaryDirectory(prefix="fleetprof-") as name:
        # Its name becomes the report's title.
        folder = Path(name) / (paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more")
        folder.mkdir()
        for path in paths:
            link = folder / path.name
            if link.is_symlink():
                raise Failure(
                    f"two files are called {path.name}: the report could not tell them apart", code=ExitCode.INVALID
                )
            link.symlink_to(path.absolute())
        read = {source for _, source in find_traces(folder)}
        if unlike := [path for path in paths if path.name not in read]:
            raise Failure(
                f"{unlike[0]} is no trace by its name",
                next_step="traces are named *.json or *.json.gz, and not as a capture's other files: report.json …",
                code=ExitCode.INVALID,
            )
        yield folder


def _render(report: Report, output: str, paths: tuple[Path, ...], out: Path | None) -> bytes:
    if output == "json":
        return write_report(report)
    if output == "html":
        command = f"fleetprof analyze {shlex.join(map(str, paths[:_MOST_PATHS]))}"
        return render_page(report, _way_to(paths, out), command + (" …" if len(paths) > _MOST_PATHS else "")).encode()
    return (render_text(report, 100).rstrip("\n") + "\n").encode()
