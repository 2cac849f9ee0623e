"""Decides which rank a trace belongs to, and says so where it is in doubt.

Order: distributedInfo of the trace; the end of its trace id (`…-r3`, `…-rank3`); its file name (`rank3`, `rank_3`,
`rank[3]`, `rank=3`).
Guarantees: never a silent choice: unknown, contradicted and doubled ranks are problems in the report, and no trace
hides another.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Protocol

from fleetprof_api.report.report import Problem

from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import TraceMetadata

_IN_TEXT: Final = re.compile(
    r"(?:^|[^a-z])(?:r(?:ank)?s?[-_/]?|ranks?\s?[=:.(\[{]\s?|ranks?\s)(\d{1,6})(?![0-9])", re.IGNORECASE
)


class RankTrace(Protocol):
    """A trace by what tells its job: a rank of a report, or one that is read for a replay."""

    @property
    def rank(self) -> int | None:
        """None where nothing says it."""

    @property
    def world_size(self) -> int | None:
        """The ranks of its job; None where nothing says it."""

    @property
    def source(self) -> str:
        """Its name among others."""


def identify(metadata: TraceMetadata, source: str, assigned: int | None, problems: Problems) -> int | None:
    """The rank of a trace; `assigned` is the one under which it was captured. None when nothing says it."""
    rank = metadata.rank
    by_id = _last_number(metadata.trace_id)
    if assigned is not None:
        if rank is not None and rank != assigned:
            problems.add(
                ProblemKind.RANK_CONTRADICTED, f"captured as rank {assigned}, but its distributedInfo says rank {rank}"
            )
        return assigned
    if rank is not None:
        return rank
    known = by_id if by_id is not None else _last_number(source)
    if known is None:
        problems.add(ProblemKind.RANK_UNKNOWN, "neither the trace nor its file name says which rank it is")
    return known


def find_doubles(ranks: Sequence[tuple[int | None, str]]) -> list[Problem]:
    """A problem for each rank that more than one source claims; `ranks` holds (rank, source)."""
    sources: dict[int, list[str]] = defaultdict(list)
    for rank, source in ranks:
        if rank is not None:
            sources[rank].append(source)
    return [
        Problem(
            kind=ProblemKind.RANK_DUPLICATE,
            message=f"{len(names)} traces claim rank {rank}: {', '.join(sorted(names)[:8])}; all are kept",
            count=len(names),
            rank=rank,
        )
        for rank, names in sorted(sources.items())
        if len(names) > 1
    ]


def tell_jobs_apart(ranks: Sequence[RankTrace]) -> str:
    """The reason why these ranks cannot be one recording of one job; empty where they can."""
    sizes: dict[int, list[str]] = defaultdict(list)
    traces: dict[int, list[str]] = defaultdict(list)
    for rank in ranks:
        if rank.world_size:
            sizes[rank.world_size].append(rank.source)
        if rank.rank is not None:
            traces[rank.rank].append(rank.source)
    if len(sizes) > 1:
        found = ", ".join(f"one of {size} ranks ({sorted(names)[0]})" for size, names in sorted(sizes.items())[:4])
        return f"these are traces of several jobs: {found}"
    counts = {len(names) for names in traces.values()}
    if len(traces) > 1 and len(counts) == 1 and counts != {1}:
        return (
            f"each of {len(traces)} ranks has {counts.pop()} traces (rank {min(traces)}: "
            f"{', '.join(sorted(traces[min(traces)])[:3])}): several jobs, or several recordings of one"
        )
    return ""


def _last_number(text: str) -> int | None:
    found = _IN_TEXT.findall(text)
    return int(found[-1]) if found else None
