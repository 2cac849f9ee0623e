"""The live display of a capture: every rank where there are few, counts and the slowest where there are many.

Guarantees: goes to stderr; a terminal gets a display in place, anything else a line for each change; text that came
from elsewhere is shown as it is, never as markup.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from fleetprof_api.plain_text import make_printable
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fleetprof_cli.durations import say_duration
from fleetprof_cli.messages import say
from fleetprof_cli.terminal.capture_view import CaptureView, Count, RankRow

EVERY_RANK_UP_TO: Final = 16
_SLOWEST: Final = 5


def draw_capture(view: CaptureView, now_unix_ns: int) -> RenderableType:
    """The display of one moment."""
    shown = list(view.ranks)
    parts: list[RenderableType] = [Text(make_printable(_heading(view, now_unix_ns)), style="bold")]
    if len(shown) > EVERY_RANK_UP_TO or not shown:
        parts.append(_count_table(view.counts))
        shown = sorted(shown, key=lambda row: (row.urgency, row.rank))[:_SLOWEST]
    if shown:
        parts.append(_rank_table(shown))
    return Group(*parts)


def _heading(view: CaptureView, now_unix_ns: int) -> str:
    end = view.ended_unix_ns or now_unix_ns
    passed = f", {say_duration(end - view.began_unix_ns)}" if 0 < view.began_unix_ns <= end else ""
    return f"{view.title}{passed}: {view.sentence}"


def _count_table(counts: Sequence[Count]) -> Table:
    table = Table.grid(padding=(0, 2))
    for count in counts:
        table.add_row(Text(str(count.number), justify="right"), Text(count.words, count.style))
    return table


def _rank_table(rows: Sequence[RankRow]) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(
            Text(f"rank {row.rank}", justify="right"), Text(row.words, row.style), Text(make_printable(row.note))
        )
    return table


class Progress:
    """Shows one capture until the block ends. `show` takes each view; `refresh` only moves the clock."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live = (
            Live(console=self._console, auto_refresh=False, transient=False) if self._console.is_terminal else None
        )
        self._view: CaptureView | None = None
        self._last_line = ""

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, view: CaptureView, now_unix_ns: int) -> None:
        """A new state."""
        self._view = view
        if self._live:
            self._live.update(draw_capture(view, now_unix_ns), refresh=True)
            return
        states = ", ".join(f"{count.number} {count.words}" for count in view.counts)
        line = view.sentence
        if states and not view.finished:
            line = f"{view.stage}: {states}" if view.stage else states
        if line != self._last_line:
            self._last_line = line
            say(line)

    def refresh(self, now_unix_ns: int) -> None:
        """Redraws the last state with the time that has passed."""
        if self._live and self._view is not None:
            self._live.update(draw_capture(self._view, now_unix_ns), refresh=True)
