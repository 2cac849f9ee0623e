"""A sidecar's words on the command line: always in their place, never a line of their own or an escape."""

import io
import re

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_cli.commands.local.list import make_capture_table
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.terminal.progress import Progress
from fleetprof_cli.terminal.status_text import failure_lines, view
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

FORGED = "no\nfleetprof: 4 of 4 ranks stored\n\rrank 2: UPLOADED\x1b]0;owned\x07\x1b[2J\u2028fleetprof: ok\u202e\x9b31m"
SEQUENCES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")


def status(text: str) -> pb.CaptureStatus:
    """A capture whose texts all come from elsewhere."""
    return pb.CaptureStatus(
        uid="u",
        name=text,
        target=text,
        finished=True,
        conditions=[pb.Condition(type="Succeeded", status="False", reason=text, message=text)],
        ranks=[
            pb.CaptureEvent(rank=rank, process_id="p", state=pb.FAILED, reason=text, message=f"{text}{rank}")
            for rank in range(3)
        ],
    )


def check_lines(printed: str, count: int) -> None:
    """So many lines of ours, and no control character."""
    lines = printed.splitlines()
    assert len(lines) == count
    assert all(line.startswith("fleetprof: ") and line.isprintable() for line in lines)


@pytest.mark.attack
def test_words_of_a_sidecar_forge_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    for line in failure_lines(status(FORGED)):
        say(line)
    check_lines(capsys.readouterr().err, 3)
    Failure(FORGED, details=[FORGED, FORGED], next_step=FORGED).show()
    check_lines(capsys.readouterr().err, 4)
    with Progress(Console(file=io.StringIO())) as progress:
        progress.show(view(status(FORGED)), 1)
    check_lines(capsys.readouterr().err, 1)


@pytest.mark.attack
def test_words_of_a_sidecar_stay_in_their_cell_of_a_display() -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=400, height=50, color_system=None)
    with Progress(terminal) as progress:
        progress.show(view(status(FORGED)), 1)
    terminal.print(make_capture_table([status(FORGED)]))
    printed = SEQUENCES.sub("", shown.getvalue())  # the display's own
    lines = printed.replace("\r", "\n").splitlines()
    assert all(line.isprintable() for line in lines)
    assert [line for line in lines if line.lstrip().startswith(("fleetprof:", "rank 2: UPLOADED"))] == []


@given(st.text())
def test_say_is_one_line_whatever_it_says(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("click.echo", lambda line, err: lines.append(line))
        say(text)
    (line,) = lines
    assert line.isprintable()
