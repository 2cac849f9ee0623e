"""The number of traces that have been read: a progress bar in terminals.

Guarantees: goes to stderr, and nowhere when that is no terminal; the line is empty again when the work is done.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fleetprof_analyzer.capture.folder import Progress
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

_TEXT: Final = "reading traces"


@contextmanager
def show_reading(console: Console | None = None) -> Iterator[Progress | None]:
    """The function to call for each trace that was read; None where the output is no terminal."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(_TEXT, total=None)
        yield lambda count, whole, _: bar.update(task, completed=count, total=whole)
