"""Ways from the page to the traces: a link where they lie beside it, else the command that fetches them, and the one
that opens them in Perfetto.

Guarantees: a link is always relative and never leaves the folder of the traces; names of a trace are quoted for the
address and for the shell. `kept` are the sources whose trace was kept at all, None: those of all ranks.
"""

import shlex
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from fleetprof_api.report.report import Report

from fleetprof_analyzer.words.text import plain

_LOCAL: Final = "local"
_TRACES: Final = (".json", ".json.gz")
_MOST_RANKS: Final = 4


def trace_address(source: str, traces: str | None, kept: Collection[str] | None = None) -> str:
    """The relative address of a trace; "" where `traces`, the way from the page to the folder of sources, is None."""
    path = PurePosixPath(source)
    if traces is None or not _is_trace(source, kept) or path.is_absolute() or ".." in path.parts:
        return ""
    return quote(f"./{traces}/{source}" if traces else f"./{source}", safe="/.")


def fetch_command(report: Report, traces: str | None, kept: Collection[str] | None = None) -> str:
    """The command to fetch a capture's traces from its store; "" where the page links them or there are none."""
    request = report.request
    if traces is not None or request is None or not any(_is_trace(rank.source, kept) for rank in report.ranks):
        return ""
    if request.namespace in ("", _LOCAL):
        return f"{_usual_command(report)} --trace-window all"
    return f"kubectl fleetprof traces {_word(request.name)} -n {_word(request.namespace)} -o DIR"


def perfetto_command(report: Report, command: str = "", kept: Collection[str] | None = None) -> str:
    """The command to write the slowest iteration of ranks that matter as one timeline; "" where no trace is known."""
    if not any(_is_trace(rank.source, kept) for rank in report.ranks):
        return ""
    shown = command or _usual_command(report)
    late = [] if report.stragglers is None else [one.rank for one in report.stragglers.ranks]
    others = [rank.rank for rank in report.ranks if rank.rank is not None and rank.rank not in late]
    ranks = ",".join(map(str, sorted([*late, *others][:_MOST_RANKS]))) if late else ""
    return f"{shown} --trace-window worst" + (f" --ranks {ranks}" if ranks else "")


def _is_trace(source: str, kept: Collection[str] | None) -> bool:
    return source.endswith(_TRACES) and (kept is None or source in kept)


def _usual_command(report: Report) -> str:
    request = report.request
    if request is None:
        return "fleetprof analyze FOLDER"
    if request.namespace in ("", _LOCAL):
        return f"fleetprof report {_word(request.uid)}"
    return f"kubectl fleetprof report {_word(request.name)} -n {_word(request.namespace)}"


def _word(text: str) -> str:
    return shlex.quote(plain(text, 100)) if text else "NAME"
