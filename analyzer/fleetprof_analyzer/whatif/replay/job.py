"""A capture as one graph: the courses of its ranks, and which of their operations are one collective.

Guarantees: ranks whose traces hold nothing that could be replayed are left out and named; where collectives cannot be
matched, each lasts as long as it did, and that is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fleetprof_api.errors import FleetprofError

from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks
from fleetprof_analyzer.job.stragglers.replay.graph.plan import Circular as CircularOperations
from fleetprof_analyzer.job.stragglers.replay.matching import match
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.rank.communication.extraction import extract_operations
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Int64s, Trace
from fleetprof_analyzer.whatif.replay.course import RankCourse, read_course
from fleetprof_analyzer.whatif.replay.graph import JobGraph, Meetings, no_meetings


@dataclass(frozen=True, slots=True)
class CapturedJob:
    """The graph of a capture; `unmatched` says why its collectives meet nobody, empty where they do.

    `samples`: of an iteration, where somebody says it.
    """

    graph: JobGraph
    ranks: list[int | None]
    left_out: list[int | None]
    unmatched: str = ""
    samples: float | None = None


class NothingToReplay(FleetprofError, ValueError):
    """No trace holds what a replay needs."""


def read_job(traces: Sequence[tuple[int | None, Trace]], terms: RecordingTerms | None = None) -> CapturedJob:
    """The job of traces by rank. Raises NothingToReplay, CircularWork."""
    courses: list[RankCourse] = []
    left_out: list[int | None] = []
    for rank, trace in traces:
        found = find_iterations(trace, None, terms or RecordingTerms(), Problems())
        operations = extract_operations(trace, found, None, rank_number=rank)
        course = read_course(trace, found, operations, rank)
        if course is None:
            left_out.append(rank)
        else:
            courses.append(course)
    if not courses:
        raise NothingToReplay("no trace holds work of a device or a collective: there is nothing to replay")
    courses.sort(key=lambda one: -1 if one.rank is None else one.rank)
    meetings, begins, unmatched = _match(courses)
    return CapturedJob(JobGraph(courses, meetings, begins), [one.rank for one in courses], left_out, unmatched)


def _match(courses: list[RankCourse]) -> tuple[Meetings, Int64s, str]:
    first = np.array([one.host.begin_ns[0] if len(one.host) else one.rows.start_ns.min() for one in courses], np.int64)
    operations = [one.operations for one in courses if one.operations is not None]
    if len(courses) < 2 or len(operations) < len(courses):
        return no_meetings(), first, ""
    matched = match(operations)
    if matched.mismatch is not None:
        return no_meetings(), first, f"collectives were not matched: {matched.mismatch.kind}"
    try:
        replay = Replay(matched)
    except CircularOperations:
        return no_meetings(), first, "collectives seem to wait for each other in a circle"
    layout = replay.layout
    captured = layout.rank < len(courses)
    aligned = align_clocks(matched)
    together = first + aligned.offset_ns
    begins = np.where(aligned.aligned, int(together.min()) - aligned.offset_ns, first)
    operation = _first_parts(courses, layout.rank[captured], layout.position[captured])
    of_rank, collective = layout.rank[captured], layout.collective[captured]
    start = replay.start_ns[captured] - begins[of_rank]
    transfer, late = _on_hosts(collective, start, start + replay.duration_ns[captured], replay.transfer_ns)
    if any(one.kind == "gpu" for one in courses):
        transfer, late = replay.transfer_ns, np.zeros(len(operation), np.int64)
    return Meetings(of_rank, operation, collective, transfer, late), begins, ""


def _on_hosts(collective: Int64s, start: Int64s, end: Int64s, shortest: Int64s) -> tuple[Int64s, Int64s]:
    """(transfers, how late each member notes the end) where processes wait for cores: none ends with the others."""
    count = len(shortest)
    last, first = np.full(count, np.iinfo(np.int64).min), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(last, collective, start)
    np.minimum.at(first, collective, end)
    transfer = np.clip(first - last, 0, shortest)
    over = (last + transfer)[collective]
    return transfer, np.maximum(end - over, 0)


def _first_parts(courses: list[RankCourse], rank: Int64s, position: Int64s) -> Int64s:
    """The operation whose row a part belongs to: parts of one batch are one row."""
    found = position.copy()
    for number, course in enumerate(courses):
        assert course.operations is not None
        columns = course.operations.columns
        first: dict[tuple[int, int], int] = {}
        rows = list(zip(columns.place.tolist(), columns.start_ns.tolist(), strict=True))
        for at, key in enumerate(rows):
            first.setdefault(key, at)
        here = rank == number
        found[here] = [first[rows[at]] for at in position[here].tolist()]
    return found
