"""Traces and reports that a person opens in the web UI: analyzed by a process of its own, with progress in the page.

Guarantees: the store that they are laid into is a folder of this user's alone, which goes with the web UI; the service
answers while traces are read. Run as a module it is that process: it prints a line of JSON for each trace.
"""

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from fleetprof_api.process.import_path import own_environment
from fleetprof_webui.models.opened import Opened, OpenedCapture, OpenedPage

from fleetprof_cli.local.child import child_command
from fleetprof_cli.messages import say
from fleetprof_cli.store_location import StoreLocation, open_store

if TYPE_CHECKING:
    from fleetprof_analyzer.capture.opened import Input
    from fleetprof_store.base import Store

_NICE: Final = 5
_MOST_LINE: Final = 1 << 20


class OpeningOrder(msgspec.Struct, frozen=True):
    """The files and folders to open, and how to read them."""

    paths: tuple[str, ...]
    iteration_range: str = ""
    jobs: int = 1


class _Line(msgspec.Struct, kw_only=True):
    """The messages of the process: of a trace that was read, of captures that are there, of what went wrong."""

    what: str
    count: int = 0
    total: int = 0
    source: str = ""
    captures: list[OpenedCapture] = []
    problem: str = ""


@dataclass
class Opening:
    """The analysis of what was opened, and its progress; `Opening.page` is what the service answers."""

    wanted: OpeningOrder
    location: StoreLocation

    def __post_init__(self) -> None:
        """Nothing is read yet."""
        self._found: dict[str, Opened] = {}
        self._began = time.monotonic()
        self._finished = False
        self._seconds = 0.0

    def page(self) -> OpenedPage:
        """The progress."""
        seconds = self._seconds if self._finished else time.monotonic() - self._began
        return OpenedPage(items=list(self._found.values()), finished=self._finished, seconds=round(seconds, 2))

    async def run(self) -> None:
        """Reads all, and says how long it took."""
        self._began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *child_command(
                "fleetprof_cli.local.web_ui.opening",
                msgspec.json.encode(self.location).decode(),
                msgspec.json.encode(self.wanted).decode(),
            ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=own_environment(),
            limit=_MOST_LINE,
        )
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                self._take(msgspec.json.decode(line, type=_Line))
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if code:
            self._take(_Line(what="", problem=f"the analysis ended with code {code}"))
        self._seconds, self._finished = time.monotonic() - self._began, True
        traces = sum(one.total for one in self._found.values())
        say(f"analyzed {traces} {'trace' if traces == 1 else 'traces'} in {self._seconds:.1f} s")

    def _take(self, line: _Line) -> None:
        nothing = Opened(what=line.what, count=0, total=0, source="", captures=[], problem="")
        known = self._found.get(line.what, nothing)
        self._found[line.what] = msgspec.structs.replace(
            known,
            count=max(known.count, line.count),
            total=max(known.total, line.total),
            source=line.source or known.source,
            captures=line.captures or known.captures,
            problem=line.problem or known.problem,
        )
        if line.problem:
            say(f"{line.what}: {line.problem}" if line.what else line.problem)


@contextmanager
def make_opening(paths: Sequence[Path], *, iteration_range: str = "", jobs: int) -> Iterator[Opening]:
    """The opening of these paths into a store that is there until the block ends."""
    wanted = OpeningOrder(tuple(str(path.absolute()) for path in paths), iteration_range, jobs)
    with tempfile.TemporaryDirectory(prefix="fleetprof-") as folder:
        yield Opening(wanted, StoreLocation(directory=folder))


def _print(line: _Line) -> None:
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


def _open_all(location: StoreLocation, wanted: OpeningOrder) -> None:
    from fleetprof_analyzer.capture.opened import name_inputs

    store = open_store(location, secret=secrets.token_bytes())
    inputs = name_inputs([Path(path) for path in wanted.paths])
    for one in inputs:
        _print(_Line(what=one.what))
    for one in inputs:
        _open(store, one, wanted)


def _open(store: "Store", one: "Input", wanted: OpeningOrder) -> None:
    from fleetprof_analyzer.capture.folder import NothingToAnalyze
    from fleetprof_analyzer.capture.opened import NAMESPACE, open_input
    from fleetprof_api.report.report import UnreadableReport

    def progress(count: int, total: int, source: str) -> None:
        _print(_Line(what=one.what, count=count, total=total, source=source))

    try:
        with tempfile.TemporaryDirectory(prefix="fleetprof-") as scratch:
            laid = open_input(
                store, one, Path(scratch), progress=progress, iteration_range=wanted.iteration_range, jobs=wanted.jobs
            )
    except (NothingToAnalyze, UnreadableReport, OSError) as error:
        _print(_Line(what=one.what, problem=str(error)))
        return
    captures = [OpenedCapture(namespace=NAMESPACE, uid=each.uid, title=each.title) for each in laid]
    _print(_Line(what=one.what, captures=captures))


def main() -> None:
    """Opens what the command line names."""
    from fleetprof_analyzer.capture.memory import keep_freed_memory

    os.nice(_NICE)
    keep_freed_memory()
    location, wanted = sys.argv[1:]
    _open_all(msgspec.json.decode(location, type=StoreLocation), msgspec.json.decode(wanted, type=OpeningOrder))


if __name__ == "__main__":
    main()
