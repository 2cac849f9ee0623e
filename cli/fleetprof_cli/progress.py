"""The live display of a capture: every rank where there are few, counts and the slowest where there are many.

Guarantees: goes to stderr; a terminal gets a display in place, anything else a line for each change; text that came
from elsewhere is shown as it is, never as markup.
"""

from types import TracebackType
from typing import Final, Self

from fleetprof_api import hub_pb2 as pb
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fleetprof_cli.messages import make_printable, say
from fleetprof_cli.status_text import STATE_ORDER, STATE_WORDS, count_states, duration_text, sentence, size_text

EVERY_RANK_UP_TO: Final = 16
_SLOWEST: Final = 5
_STYLES: Final = {pb.UPLOADED: "green", pb.FAILED: "red", pb.STARTED: "yellow"}


def draw_status(status: pb.CaptureStatus, now_unix_ns: int) -> RenderableType:
    """The display of one moment."""
    shown = sorted(status.ranks, key=lambda rank: rank.rank)
    parts: list[RenderableType] = [Text(make_printable(_heading(status, now_unix_ns)), style="bold")]
    if len(shown) > EVERY_RANK_UP_TO:
        parts.append(_counts(shown))
        shown = sorted(shown, key=_urgency)[:_SLOWEST]
    if shown:
        parts.append(_rank_table(shown))
    return Group(*parts)


def _heading(status: pb.CaptureStatus, now_unix_ns: int) -> str:
    end = status.completed_unix_ns or now_unix_ns
    passed = f", {duration_text(end - status.submitted_unix_ns)}" if 0 < status.submitted_unix_ns <= end else ""
    start = f", from step {status.first_step}" if status.start_mode == "step" else ""
    return f"{status.name or status.uid} of {status.target}{start}{passed}: {sentence(status)}"


def _urgency(rank: pb.CaptureEvent) -> tuple[int, int]:
    # Failures first, then whoever is least far.
    return (-1 if rank.state == pb.FAILED else rank.state, rank.rank)


def _counts(ranks: list[pb.CaptureEvent]) -> Table:
    counts = count_states(ranks)
    table = Table.grid(padding=(0, 2))
    for state in STATE_ORDER:
        if counts[state]:
            table.add_row(Text(str(counts[state]), justify="right"), Text(STATE_WORDS[state], _STYLES.get(state, "")))
    return table


def _rank_table(ranks: list[pb.CaptureEvent]) -> Table:
    table = Table.grid(padding=(0, 2))
    for rank in ranks:
        note = f"{rank.reason}: {rank.message}" if rank.state == pb.FAILED else ""
        if rank.trace_bytes:
            note = f"{size_text(rank.trace_bytes)}, {size_text(rank.compressed_bytes)} stored"
        table.add_row(
            Text(f"rank {rank.rank}", justify="right"),
            Text(STATE_WORDS.get(rank.state, "asked"), _STYLES.get(rank.state, "")),
            Text(make_printable(note)),
        )
    return table


class Progress:
    """Shows one capture until the block ends. `show` takes each status; `refresh` only moves the clock."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live = (
            Live(console=self._console, auto_refresh=False, transient=False) if self._console.is_terminal else None
        )
        self._status: pb.CaptureStatus | None = None
        self._said: dict[int, int] = {}
        self._heading = ""

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, status: pb.CaptureStatus, now_unix_ns: int) -> None:
        """A new status."""
        self._status = status
        if self._live:
            self._live.update(draw_status(status, now_unix_ns), refresh=True)
            return
        counts = dict(count_states(status.ranks))
        if counts != self._said or status.finished:
            self._said = counts
            heading = sentence(status)
            states = ", ".join(f"{counts[state]} {STATE_WORDS[state]}" for state in STATE_ORDER if counts.get(state))
            line = heading if status.finished or not states else states
            if line != self._heading:
                self._heading = line
                say(line)

    def refresh(self, now_unix_ns: int) -> None:
        """Redraws the last status with the time that has passed."""
        if self._live and self._status is not None:
            self._live.update(draw_status(self._status, now_unix_ns), refresh=True)
