"""Writes a cut of traces for Perfetto: of a folder, or of a capture in the store.

Guarantees: the report is made of all traces first, so that the cut shows what it says; writes the cut only.
"""

from collections.abc import Sequence
from pathlib import Path

from fleetprof_api import keys
from fleetprof_api.kernel_class import KernelClass
from fleetprof_store.base import Store

from fleetprof_analyzer.capture.folder import Progress, find_traces, report_of, summarise_directory
from fleetprof_analyzer.capture.store import assemble_capture, summarise_capture
from fleetprof_analyzer.timeline.merged_trace import MergedTrace, Open, Wanted, Write, write_merged_trace


def cut_directory(
    path: Path | str,
    wanted: Wanted,
    write: Write,
    *,
    progress: Progress | None = None,
    kernel_classes: Sequence[KernelClass] = (),
    jobs: int = 1,
) -> MergedTrace:
    """Cuts traces below a folder, or one file; `kernel_classes` and `jobs` as for its report.

    Raises NothingToAnalyze, FileNotFoundError, NoSuchPart; OSError of the traces.
    """
    root = Path(path)
    summaries = summarise_directory(root, progress=progress, kernel_classes=kernel_classes, jobs=jobs)
    traces: dict[str, Open] = {
        source: lambda file=file: file.open("rb")  # type: ignore[misc]
        for file, source in find_traces(root)
    }
    operations = [(summary.source, summary.operations) for summary in summaries]
    return write_merged_trace(report_of(root, summaries, kernel_classes), operations, traces, wanted, write)


def cut_capture(store: Store, namespace: str, uid: str, wanted: Wanted, write: Write) -> MergedTrace:
    """Cuts the traces of one capture that are in the store. Raises NothingStored, NoSuchPart, StoreError."""
    capture, summaries = summarise_capture(store, namespace, uid)
    # A stored summary names itself as the source; its trace, where there is one, is that of the rank.
    traces: dict[str, Open] = {
        summary.source: lambda rank=summary.rank_number: store.open(keys.trace_key(namespace, uid, rank))  # type: ignore[misc]
        for summary in summaries
        if summary.rank_number is not None and capture.ranks[summary.rank_number].trace_bytes is not None
    }
    operations = [(summary.source, summary.operations) for summary in summaries]
    return write_merged_trace(assemble_capture(capture, summaries), operations, traces, wanted, write)
