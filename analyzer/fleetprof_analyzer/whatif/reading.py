"""Reads the captures that a what-if is asked of: folders or files of traces, through the one reader of traces.

Guarantees: a trace that cannot be read is left out and named, as a report does.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from fleetprof_analyzer.capture.folder import NothingToAnalyze, find_traces
from fleetprof_analyzer.rank.identity import identify
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.limits import LimitExceeded
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_analyzer.whatif.replay.job import CapturedJob, read_job


def read_folder(root: Path, terms: RecordingTerms | None = None) -> CapturedJob:
    """The job of all traces below a folder, or of one file. Raises NothingToAnalyze, FileNotFoundError, and what
    `read_job` does.
    """
    return read_job(read_traces(root), terms)


def read_traces(root: Path) -> list[tuple[int | None, Trace]]:
    """All traces below a folder that hold something, by rank."""
    found = list(_read(find_traces(root)))
    if not found:
        raise NothingToAnalyze(f"no trace below {root} holds anything: give the folder that holds all ranks' traces")
    return found


def _read(files: Sequence[tuple[Path, str]]) -> Iterable[tuple[int | None, Trace]]:
    for path, source in files:
        problems = Problems()
        try:
            with path.open("rb") as file:
                trace = read_trace(file, source, problems)
        except (LimitExceeded, OSError):
            continue
        if len(trace.rows):
            yield identify(trace.metadata, source, None, problems), trace
