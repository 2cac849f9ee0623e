"""Makes the report of one capture in the store: in one go, or as a map (summaries, by shard) and a reduce (merge).

Guarantees: both ways give the same report, byte for byte but for the time of making; a rank that cannot be read is a
problem of that rank and spoils no other; what was summarised before is not summarised again; what was there before is
replaced only by a whole report. Raises StoreError when the store does not answer.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.errors import FleetprofError
from fleetprof_api.report.report import Report
from fleetprof_store.base import NotFound, Store, StoreError

from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.capture.folder import Progress, summarise_file
from fleetprof_analyzer.capture.replayed.predictions import add_predictions
from fleetprof_analyzer.capture.replayed.reading import OpenTrace
from fleetprof_analyzer.capture.stored_capture import (
    CaptureInputs,
    RankFiles,
    get_if_there,
    read_capture,
    read_samples,
)
from fleetprof_analyzer.capture.timeline_files import RankTimeline, write_overview
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS_BYTES
from fleetprof_analyzer.rank.stored_summary import MOST_BYTES, Unusable, pack_summary, unpack_summary
from fleetprof_analyzer.rank.summary import RankSummary, TraceFindings, merge
from fleetprof_analyzer.slices.stored_report import put_report
from fleetprof_analyzer.trace.limits import TraceLimits
from fleetprof_analyzer.trace.problems import ProblemKind, Problems

_TRIES: Final = 3
_READERS: Final = 16


class NothingStored(FleetprofError):
    """The store holds nothing of this capture; the message says where it was looked for."""


def analyze_capture(
    store: Store, namespace: str, uid: str, *, progress: Progress | None = None, limits: TraceLimits | None = None
) -> Report:
    """Reads one capture, writes its timeline, report.html, slices and report.json beside it, and returns the report.

    Ranks whose trace stayed where it was taken are reported by their summary. Raises NothingStored.
    """
    capture = _find(store, namespace, uid)
    summaries = []
    for count, (rank, files) in enumerate(capture.ranks.items(), 1):
        if files.trace_bytes is None:
            summaries.append(_take_summary(store, capture, rank, files))
        else:
            summaries.append(_draw(store, capture, rank, limits))
        if progress is not None:
            progress(count, len(capture.ranks), summaries[-1].source)
    return _write(store, capture, summaries)


def summarise_capture(store: Store, namespace: str, uid: str) -> tuple[CaptureInputs, list[RankSummary]]:
    """A capture and the summaries of its ranks: the stored ones where they hold, the others made now. Writes nothing.

    Raises NothingStored.
    """
    capture = _find(store, namespace, uid)
    return capture, [
        _take_summary(store, capture, rank, files)
        if files.trace_bytes is None or _holds(store, capture, rank, files)
        else _summarise(store, capture, rank, None)
        for rank, files in capture.ranks.items()
    ]


def summarise_ranks(
    store: Store,
    namespace: str,
    uid: str,
    *,
    shard: int,
    shards: int,
    progress: Progress | None = None,
    limits: TraceLimits | None = None,
) -> int:
    """Writes timelines and summaries of every `shards`-th rank with a trace, from the `shard`-th on; how many.

    Summaries that are there and hold are kept, so a pod that was killed goes on where it was. Raises NothingStored.
    """
    capture = _find(store, namespace, uid)
    mine = [(r, f) for r, f in capture.ranks.items() if f.trace_bytes is not None][shard::shards]
    made = 0
    for count, (rank, files) in enumerate(mine, 1):
        if not _holds(store, capture, rank, files):
            summary = _draw(store, capture, rank, limits)
            key = keys.summary_key(namespace, uid, rank)
            try:
                data = pack_summary(summary, trace_bytes=files.trace_bytes or 0, samples_bytes=files.samples_bytes or 0)
            except Unusable as error:
                data = pack_summary(
                    _problem_only(summary.source, rank, ProblemKind.SUMMARY_UNUSABLE, str(error)),
                    trace_bytes=files.trace_bytes or 0,
                    samples_bytes=files.samples_bytes or 0,
                )
            # The summary last: where it is, what belongs to it is there too.
            if len(summary.operations) > MOST_OPERATIONS_BYTES:
                store.put(keys.operations_key(namespace, uid, rank), summary.operations)
            store.put(key, data)
            made += 1
        if progress is not None:
            progress(count, len(mine), _source(rank))
    return made


def merge_capture(store: Store, namespace: str, uid: str) -> Report:
    """The report of the summaries that are there; a rank with a trace but without a summary is told as a problem.

    Raises NothingStored.
    """
    capture = _find(store, namespace, uid)
    with ThreadPoolExecutor(_READERS) as readers:
        summaries = list(readers.map(lambda item: _take_summary(store, capture, *item), capture.ranks.items()))
    return _write(store, capture, summaries)


def _find(store: Store, namespace: str, uid: str) -> CaptureInputs:
    capture = read_capture(store, namespace, uid)
    if not capture.is_there:
        where = store.locate(keys.request_prefix(namespace, uid) + "ledger.json")
        raise NothingStored(f"no ledger and no trace of capture {uid}: there is nothing at {where}")
    return capture


def _write(store: Store, capture: CaptureInputs, summaries: Sequence[RankSummary]) -> Report:
    report = add_predictions(assemble_capture(capture, summaries), _list_traces(store, capture), capture.terms)
    courses = {summary.source: summary.course for summary in summaries}
    write_overview(store, capture.namespace, capture.uid, report, courses)
    page_key = keys.report_page_key(capture.namespace, capture.uid)
    # Whoever reads a page of a bucket has fetched that page alone.
    traces = "" if Path(store.locate(page_key)).is_absolute() else None
    kept = {rank for rank, files in capture.ranks.items() if files.trace_bytes is not None}
    kept |= set(report.whole_traces) if capture.sends_chosen_traces else set()
    page = render_page(report, traces, kept=[_source(rank) for rank in sorted(kept)])
    put_report(store, capture.namespace, capture.uid, report, page)
    return report


def _list_traces(store: Store, capture: CaptureInputs) -> list[OpenTrace]:
    return [
        (partial(store.open, keys.trace_key(capture.namespace, capture.uid, rank)), _source(rank), rank)
        for rank, files in capture.ranks.items()
        if files.trace_bytes is not None
    ]


def assemble_capture(capture: CaptureInputs, summaries: Sequence[RankSummary]) -> Report:
    """The report of a capture's summaries."""
    return assemble(
        merge([summaries]),
        title=capture.request.name or capture.uid,
        made_unix_ns=time.time_ns(),
        request=capture.request,
        ledger=capture.ledger,
        problems=capture.problems,
        kernel_classes=capture.terms.kernel_classes,
    )


def _source(rank: int) -> str:
    return f"ranks/{rank}/trace.json.gz"


def _draw(store: Store, capture: CaptureInputs, rank: int, limits: TraceLimits | None) -> RankSummary:
    """Reads the rank's trace and writes its timeline."""
    timeline = RankTimeline(rank)
    summary = _summarise(store, capture, rank, limits, timeline.make)
    timeline.write(store, capture.namespace, capture.uid)
    return summary


def _summarise(
    store: Store,
    capture: CaptureInputs,
    rank: int,
    limits: TraceLimits | None,
    show: Callable[[TraceFindings], None] | None = None,
) -> RankSummary:
    """Reads the rank's trace. A store that fails in the middle of it is asked again a few times."""
    for left in reversed(range(_TRIES)):
        problems = Problems()
        try:
            samples = read_samples(lambda: store.open(keys.samples_key(capture.namespace, capture.uid, rank)), problems)
            return summarise_file(
                lambda: store.open(keys.trace_key(capture.namespace, capture.uid, rank)),
                _source(rank),
                samples=samples,
                assigned=rank,
                terms=capture.terms,
                problems=problems,
                trace_bytes=capture.ranks[rank].trace_bytes,
                limits=limits,
                show=show,
            )
        except NotFound:
            return _problem_only(
                _source(rank), rank, ProblemKind.RANK_MISSING, "the trace is not in the store any more"
            )
        except StoreError as error:
            if not error.retryable or not left:
                raise
    raise AssertionError("a loop over tries ends by itself")


def _holds(store: Store, capture: CaptureInputs, rank: int, files: RankFiles) -> bool:
    """Tells whether there is a summary of just these files, made by this version."""
    if files.summary_bytes is None or files.summary_bytes > MOST_BYTES:
        return False
    data = get_if_there(store, keys.summary_key(capture.namespace, capture.uid, rank))
    try:
        unpack_summary(data or b"", rank, trace_bytes=files.trace_bytes, samples_bytes=files.samples_bytes or 0)
    except Unusable:
        return False
    return True


def _take_summary(store: Store, capture: CaptureInputs, rank: int, files: RankFiles) -> RankSummary:
    """The stored summary of a rank, or one that only says why there is none."""
    if files.summary_bytes is None:
        message = "the trace is there, its summary is not: the pod that should have made it did not end well"
        return _problem_only(_source(rank), rank, ProblemKind.RANK_NOT_SUMMARISED, message)
    source = f"ranks/{rank}/summary.json.gz"
    if files.summary_bytes > MOST_BYTES:
        message = f"{files.summary_bytes:,} bytes, {MOST_BYTES:,} are allowed"
        return _problem_only(source, rank, ProblemKind.SUMMARY_UNUSABLE, message)
    try:
        data = store.get(keys.summary_key(capture.namespace, capture.uid, rank))
        # Without a trace it was made where the trace is, of files that the store never saw.
        if files.trace_bytes is None:
            return unpack_summary(data, rank)
        summary = unpack_summary(data, rank, trace_bytes=files.trace_bytes, samples_bytes=files.samples_bytes or 0)
        return _with_operations(store, capture, rank, files, summary)
    except (Unusable, NotFound) as error:
        return _problem_only(source, rank, ProblemKind.SUMMARY_UNUSABLE, str(error))


def _with_operations(
    store: Store, capture: CaptureInputs, rank: int, files: RankFiles, summary: RankSummary
) -> RankSummary:
    """Joins what was too long for the summary; it must be of the length that the summary says."""
    if summary.operations or files.operations_bytes != summary.operations_bytes:
        return summary
    data = store.get(keys.operations_key(capture.namespace, capture.uid, rank))
    return msgspec.structs.replace(summary, operations=data)


def _problem_only(source: str, rank: int, kind: ProblemKind, message: str) -> RankSummary:
    problems = Problems()
    problems.add(kind, message)
    return RankSummary(source=source, rank_number=rank, problems=problems.entries(source, rank))
