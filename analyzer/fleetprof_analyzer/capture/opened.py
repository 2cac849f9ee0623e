"""Lays traces that somebody has, or a report of them, into a store as captures, so that the web UI shows them.

Guarantees: the files are only read, and compressed traces are linked, not copied; one damaged trace is named in the
report and spoils no other; a folder of several jobs becomes one capture for each folder of theirs.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import MOST_REPORT_BYTES, Report, UnreadableReport, read_report
from fleetprof_store.base import Store
from isal import igzip

from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.capture.folder import (
    NothingToAnalyze,
    Piece,
    Progress,
    SeveralJobs,
    count_jobs,
    find_traces,
    summarise_piece,
    summary_of_killed,
)
from fleetprof_analyzer.capture.memory import free_share
from fleetprof_analyzer.capture.replayed.predictions import add_predictions
from fleetprof_analyzer.capture.replayed.reading import OpenTrace, open_file
from fleetprof_analyzer.capture.timeline_files import write_overview
from fleetprof_analyzer.capture.workers import work_in_processes
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.pyramid.writer import MOST_FILE_BYTES
from fleetprof_analyzer.rank.identity import tell_jobs_apart
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import RankSummary, merge
from fleetprof_analyzer.slices.stored_report import put_report

NAMESPACE: Final = "opened"
_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_MOST_NAME: Final = 60
_HEAD_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class LaidCapture:
    """One capture that was laid into the store."""

    uid: str
    title: str


@dataclass(frozen=True, slots=True)
class Input:
    """Files or a folder that are opened together, with a name for people."""

    what: str
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    file: Path
    source: str
    summary: RankSummary
    timeline: Path


def open_report(store: Store, path: Path) -> LaidCapture:
    """Lays a report.json into the store, without traces and timeline. Raises UnreadableReport, OSError."""
    if path.stat().st_size > MOST_REPORT_BYTES:
        raise UnreadableReport(f"{path} is longer than {MOST_REPORT_BYTES:,} bytes")
    report = read_report(path.read_bytes())
    opened = LaidCapture(make_uid(path), report.title or path.name)
    _write(store, opened, report)
    return opened


def is_report(path: Path) -> bool:
    """Tells whether a file is a report of ours rather than a trace."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return b'"schema_version"' in head and b'"traceEvents"' not in head


def open_traces(
    store: Store,
    files: Sequence[tuple[Path, str]],
    title: str,
    scratch: Path,
    *,
    progress: Progress,
    iteration_range: str = "",
    jobs: int = 1,
) -> list[LaidCapture]:
    """Analyzes traces, (file, source) each, and lays them into the store as one capture, or one for each job's folder.

    `scratch` is an empty folder. Raises SeveralJobs where the files of one folder are of several jobs, StoreError.
    """
    paths = [path for path, _ in files]
    jobs = count_jobs(paths, jobs)
    memory_bytes = free_share(jobs)
    pieces = [
        Piece(path, source, (), iteration_range, memory_bytes, scratch / f"{number}.bin")
        for number, (path, source) in enumerate(files)
    ]
    read: dict[int, _Read] = {}
    for number, summary in work_in_processes(summarise_piece, pieces, jobs, memory_bytes):
        piece = pieces[number]
        found = summary or summary_of_killed(piece.source)
        read[number] = _Read(piece.file, piece.source, found, scratch / f"{number}.bin")
        progress(len(read), len(pieces), piece.source)
    ordered = [read[number] for number in range(len(pieces))]
    return [
        _lay_down(store, name, place, group, RecordingTerms(iteration_range=iteration_range))
        for name, place, group in _tell_captures_apart(ordered, title, paths[0].parent)
    ]


def name_inputs(paths: Sequence[Path]) -> list[Input]:
    """The parts that are opened by themselves: each folder, each report, and all other files together."""
    whole = [Input(path.resolve().name, (path,)) for path in paths if path.is_dir() or is_report(path)]
    single = tuple(path for path in paths if (path,) not in [one.paths for one in whole])
    if single:
        more = f" and {len(single) - 1} more" if len(single) > 1 else ""
        whole.append(Input(single[0].name + more, single))
    return whole


def open_input(
    store: Store, one: Input, scratch: Path, *, progress: Progress, iteration_range: str = "", jobs: int = 1
) -> list[LaidCapture]:
    """Lays a report, or what is analyzed of traces, into the store. `scratch` is an empty folder.

    Raises NothingToAnalyze, UnreadableReport, OSError, StoreError.
    """
    first, *_ = one.paths
    if not first.is_dir() and is_report(first):
        return [open_report(store, first)]
    files = find_traces(first) if first.is_dir() else [(path, path.name) for path in one.paths]
    if not files:
        raise NothingToAnalyze(f"no *.json or *.json.gz below {first}: give the folder that holds the traces")
    return open_traces(store, files, one.what, scratch, progress=progress, iteration_range=iteration_range, jobs=jobs)


def make_uid(path: Path) -> str:
    """A name for a capture of these files, which keys and addresses may hold."""
    whole = str(path.resolve())
    words = _NAME.sub("-", path.resolve().name).strip("-")[:_MOST_NAME]
    return f"{words or 'traces'}-{hashlib.blake2b(whole.encode(), digest_size=4).hexdigest()}"


def _tell_captures_apart(read: Sequence[_Read], title: str, place: Path) -> list[tuple[str, Path, Sequence[_Read]]]:
    mixed = tell_jobs_apart([one.summary.rank for one in read if one.summary.rank is not None])
    if not mixed:
        return [(title, read[0].file if len(read) == 1 else place, read)]
    folders: dict[Path, list[_Read]] = {}
    for one in read:
        folders.setdefault(one.file.parent, []).append(one)
    if len(folders) == 1:
        raise SeveralJobs(f"{place}: {mixed}; give the folder of one")
    return [found for folder, group in folders.items() for found in _tell_captures_apart(group, folder.name, folder)]


def _lay_down(store: Store, title: str, place: Path, read: Sequence[_Read], terms: RecordingTerms) -> LaidCapture:
    opened = LaidCapture(make_uid(place), title)
    if len(read) == 1 and read[0].summary.rank_number is None:
        # A single trace needs no number to be told from others: it stands as rank 0.
        read = [replace(read[0], summary=_as_rank_0(read[0].summary))]
    for one in read:
        rank = one.summary.rank_number
        if rank is None:
            continue
        if one.timeline.is_file() and one.timeline.stat().st_size <= MOST_FILE_BYTES:
            store.put(keys.rank_timeline_key(NAMESPACE, opened.uid, rank), one.timeline.read_bytes())
        _link_trace(store, one.file, keys.trace_key(NAMESPACE, opened.uid, rank))
        one.timeline.unlink(missing_ok=True)
    assembled = assemble(merge([[one.summary for one in read]]), title=title, made_unix_ns=time.time_ns())
    traces: list[OpenTrace] = [(partial(open_file, one.file), one.source, one.summary.rank_number) for one in read]
    report = add_predictions(assembled, traces, terms)
    write_overview(store, NAMESPACE, opened.uid, report, {one.source: one.summary.course for one in read})
    _write(store, opened, report)
    return opened


def _as_rank_0(summary: RankSummary) -> RankSummary:
    rank = None if summary.rank is None else msgspec.structs.replace(summary.rank, rank=0)
    return msgspec.structs.replace(summary, rank_number=0, rank=rank)


def _link_trace(store: Store, file: Path, key: str) -> None:
    """Lets the store hold the trace: by a link where it is compressed already."""
    if file.suffix != ".gz":
        store.put(key, igzip.compress(file.read_bytes()))
        return
    link = Path(store.locate(key))
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(file.resolve())


def _write(store: Store, opened: LaidCapture, report: Report) -> None:
    now = time.time_ns()
    ledger = Ledger(
        uid=opened.uid,
        name=opened.title,
        namespace=NAMESPACE,
        submitted_unix_ns=now,
        completed_unix_ns=now,
        outcome="Complete",
    )
    put_report(store, NAMESPACE, opened.uid, report, render_page(report, None))
    store.put(keys.ledger_key(NAMESPACE, opened.uid), msgspec.json.encode(ledger))
