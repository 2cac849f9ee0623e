"""Reads the captures that a what-if is asked of, through the one reader of traces: folders, files, and stored ones.

Guarantees: a trace that cannot be read is left out, as in a report; traces of several recordings are none of one job.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from fleetprof_api import keys
from fleetprof_store.base import Store, StoreError

from fleetprof_analyzer.capture.folder import NothingToAnalyze, SeveralJobs, find_traces
from fleetprof_analyzer.capture.stored_capture import read_capture
from fleetprof_analyzer.rank.identity import find_doubles, identify, tell_jobs_apart
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.limits import LimitExceeded
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_analyzer.whatif.replay.job import CapturedJob, read_job

OpenTrace = tuple[Callable[[], IO[bytes]], str, int | None]
"""A trace: what opens it, its name, and its rank where that is known."""


class _ReadTrace(NamedTuple):
    rank: int | None
    world_size: int | None
    source: str
    trace: Trace


def read_folder(root: Path, terms: RecordingTerms | None = None) -> CapturedJob:
    """The job of all traces below a folder, or of one file.

    Raises NothingToAnalyze (SeveralJobs where the traces are not of one), FileNotFoundError, and what `read_job` does.
    """
    files: list[OpenTrace] = [(partial(open_file, path), source, None) for path, source in find_traces(root)]
    found = _read(files, f"below {root}")
    mixed = tell_jobs_apart(found)
    if not mixed and (doubled := find_doubles([(one.rank, one.source) for one in found])):
        mixed = f"several traces are of rank {doubled[0].rank}: several jobs, or several recordings of one"
    if mixed:
        raise SeveralJobs(f"{root}: {mixed}; give the folder of one")
    return read_job([(one.rank, one.trace) for one in found], terms)


def read_stored(store: Store, namespace: str, uid: str) -> CapturedJob:
    """The job of a capture in a store. Raises NothingToAnalyze, StoreError, and what `read_job` does."""
    capture = read_capture(store, namespace, uid)
    files: list[OpenTrace] = [
        (partial(store.open, keys.trace_key(namespace, uid, rank)), f"ranks/{rank}", rank)
        for rank, one in capture.ranks.items()
        if one.trace_bytes is not None
    ]
    return read_job(read_files(files, f"of {uid} in the store"), capture.terms)


def open_file(path: Path) -> IO[bytes]:
    """A trace of a folder."""
    return path.open("rb")


def read_files(files: Iterable[OpenTrace], where: str) -> list[tuple[int | None, Trace]]:
    """The traces that hold something, by rank; `where` they are, in words. Raises NothingToAnalyze."""
    return [(one.rank, one.trace) for one in _read(files, where)]


def _read(files: Iterable[OpenTrace], where: str) -> list[_ReadTrace]:
    found = []
    for opening, source, rank in files:
        problems = Problems()
        try:
            with opening() as file:
                trace = read_trace(file, source, problems)
        except (LimitExceeded, OSError, StoreError):
            continue
        if len(trace.rows):
            known = identify(trace.metadata, source, None, problems) if rank is None else rank
            found.append(_ReadTrace(known, trace.metadata.world_size, source, trace))
    if not found:
        raise NothingToAnalyze(f"no trace {where} holds anything: give all ranks' traces")
    return found
