"""`--trace-window` of `analyze` and both `report`s: a cut of the traces for Perfetto instead of a report.

Guarantees: the file appears whole or not at all; what was left out, and how well the clocks agree, is said.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from fleetprof_analyzer.timeline.window import CutWindow, NoSuchPart, parse_window

from fleetprof_cli.capture.rank_numbers import read_ranks
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure, say

# What reads and writes traces is loaded where a cut is wanted.
if TYPE_CHECKING:
    from fleetprof_analyzer.timeline.merged_trace import MergedTrace, Wanted, Write

_DEFAULT: Final = Path("trace-window.json.gz")
_SUFFIX: Final = ".json.gz"
_MOST_SAID: Final = 8


def window_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--trace-window` (a `Window`) and `--ranks`; `read_wanted` takes them out of the command's arguments."""
    command = click.option(
        "--ranks",
        metavar="0,8,16-19",
        callback=read_ranks,
        help="Include these ranks (default: those of the findings).",
    )(command)
    return click.option(
        "--trace-window",
        metavar="WINDOW",
        callback=_read_window,
        help="Write a trace for Perfetto instead: iterations (7 or 7..9), worst, all, module:NAME, or a time "
        "(250ms..1.5s).",
    )(command)


def cut_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`window_options` with `--out`, for a command that writes nothing else to a file; `read_cut` takes them out."""
    command = click.option(
        "--out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Where that trace goes."
    )(command)
    return window_options(command)


def _read_window(_context: click.Context, _parameter: click.Parameter, value: str | None) -> CutWindow | None:
    try:
        return None if value is None else parse_window(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def read_wanted(context: click.Context, *unfit: str) -> "Wanted | None":
    """The cut that is wanted; None where a report is wanted. Raises UsageError beside the options named `unfit`."""
    window, ranks = context.params["trace_window"], context.params["ranks"]
    if window is None:
        if ranks is not None:
            raise click.UsageError("--ranks chooses the ranks of --trace-window: give that too", context)
        return None
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in unfit and context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--trace-window writes a trace: {parameter.opts[-1]} is for reports", context)
    from fleetprof_analyzer.timeline.merged_trace import Wanted

    return Wanted(window, ranks)


def read_cut(context: click.Context, *unfit: str) -> "Wanted | None":
    """As `read_wanted`, of the options of `cut_options`."""
    wanted = read_wanted(context, *unfit)
    if wanted is None and context.params["out"] is not None:
        raise click.UsageError("--out is where the trace of --trace-window goes: give that too", context)
    return wanted


def write_cut(out: Path | None, cut: "Callable[[Write], MergedTrace]") -> None:
    """Writes what `cut` makes to `out` and tells what it is. Raises Failure, and what `cut` raises of a store."""
    from isal import igzip

    path = out or _DEFAULT
    if not path.name.endswith(_SUFFIX):
        raise Failure(f"--out {path}: a trace is written as *{_SUFFIX}", code=ExitCode.INVALID)
    partial = path.with_name(path.name + ".part")
    cleanup = ExitStack()
    try:
        with _writing(path):
            # Level 1 is a third of the time and costs a tenth of the size.
            file: Any = igzip.IGzipFile(partial, "wb", compresslevel=1, mtime=0)  # type: ignore[no-untyped-call]
        cleanup.callback(_close, file)

        def write(data: bytes) -> None:
            with _writing(path):
                file.write(data)

        made = cut(write)
        with _writing(path):
            file.close()
            partial.replace(path)
    except NoSuchPart as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None
    except OSError as error:
        raise Failure(f"a trace could not be read: {error}") from None
    finally:
        cleanup.close()
        with suppress(OSError):  # on a volume that cannot be written
            partial.unlink(missing_ok=True)
    click.echo(path)
    _tell(made)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from None


def _close(file: Any) -> None:
    with suppress(OSError):  # what could not be written was said
        file.close()


def _tell(made: "MergedTrace") -> None:
    numbers = ", ".join(one.source if one.rank is None else str(one.rank) for one in made.ranks)
    events = sum(one.events for one in made.ranks)
    say(f"{made.window}; rank{'s' if len(made.ranks) > 1 else ''} {numbers}; {events:,} events")
    say(f"clocks: {made.clocks}")
    for words in made.left_out:
        say(f"left out: {words}")
    for problem in made.problems[:_MOST_SAID]:
        say(f"{problem.source}: {problem.message} ({problem.count:,})")
    if len(made.problems) > _MOST_SAID:
        say(f"and {len(made.problems) - _MOST_SAID} more problems, listed at the end of the file")
    say("open it at https://ui.perfetto.dev")
