"""The analyzer's words on a trace, piece by piece: the pieces that the report sums up."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.rank.measures.stages.main_thread import find_main_thread
from fleetprof_analyzer.rank.measures.stages.stages import bound_by_passes, find_passes, label_iterations
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.report import Rank, Report


@dataclass(frozen=True)
class RankPieces:
    """One rank's pieces by iteration (Unix ns), and the process that it was."""

    rank: int
    pid: int
    iterations: list[list[Label]]
    as_reported: bool  # their sums are those of the report


def read_found(capture: Path) -> list[RankPieces]:
    """The pieces of each rank of a capture in the store, by the analyzer as it is now."""
    report = msgspec.json.decode((capture / "report.json").read_bytes(), type=Report)
    return [_of_rank(rank, capture / rank.source) for rank in report.ranks]


def _of_rank(rank: Rank, path: Path) -> RankPieces:
    pid = msgspec.json.decode(gzip.decompress(path.with_name("samples.json.gz").read_bytes()))["pid"]
    with path.open("rb") as file:
        trace = read_trace(file, path.name, Problems())
    thread = find_main_thread(trace, find_calls(trace))
    if thread is None or rank.rank is None:
        return RankPieces(rank.rank or 0, pid, [], as_reported=True)
    passes = find_passes(thread)
    bounds = [(one.start_ns, one.start_ns + one.duration_ns) for one in rank.iterations]
    labels, _ = label_iterations(trace, thread, passes, bounds or bound_by_passes(thread, passes))
    sums = Counter[str]()
    for start, end, stage in (label for each in labels for label in each):
        sums[stage] += end - start
    stage_times = {} if rank.stages is None else {one.stage: one.time_ns for one in rank.stages.stages if one.time_ns}
    return RankPieces(rank.rank, pid, labels, as_reported=dict(sums) == stage_times)
