"""Writes the overview of a capture: every rank's iterations with what they were made of, and which ranks have more.

Made of the report and the courses of its ranks, so that a page of 1,000 ranks needs no trace. It is the index of the
timeline, and is written last: where it is not, there is no timeline. Guarantees: pure but for the sizes that it is
given; at most `MOST_CELLS` iterations, the first of each rank; what is left out is counted. Of more than `MOST_MOMENTS`
moments of courses, those of the last ranks are left out.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import median_low
from typing import Final, Literal

import msgspec
import numpy as np
from fleetprof_api import __version__
from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.pyramid.container import Block, Body, pack
from fleetprof_analyzer.pyramid.header import FLEET_FORM, STAGES
from fleetprof_analyzer.pyramid.planes import shuffle
from fleetprof_analyzer.rank.measures.course import COURSE_CLASSES

MOST_CELLS: Final = 200_000
MOST_MOMENTS: Final = 16 << 20
MEASURES: Final = ("compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle")
CELL_TYPES: Final = (
    {"row": "u4", "index": "i8", "start_ns": "i8", "duration_ns": "i8"}
    | {f"{name}_ns": "i8" for name in MEASURES}
    | {f"stage_{name}_ns": "i8" for name in STAGES}
)
UNKNOWN: Final = -1

Detail = Literal["full", "stages", "none"]


class FleetRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks in the report's order, columns of equal length.

    `shift_ns` was added to a rank's times, because its clock is further from the others' than an iteration is long.
    `detail`: "full" where there is a `rank-<n>.bin`; "stages" where iterations are all that is known, as of a summary.
    """

    rank: list[int | None] = []
    host: list[str] = []
    kind: list[str] = []
    detail: list[Detail] = []
    file_bytes: list[int] = []
    shift_ns: list[int] = []


class FleetHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of `fleet.bin`. Times are ns from `origin_ns`; those of a rank without absolute time from its own."""

    form: str = FLEET_FORM
    made_by: str
    origin_ns: str
    span_ns: int
    stages: tuple[str, ...] = STAGES
    ranks: FleetRanks
    cells: Block
    cell_count: int
    cells_left_out: int
    moments: list[int] = []  # of each iteration of a rank; 0 where its course is not known
    courses: Block = Block()  # a byte for each moment of each cell, in the order of the cells
    course_count: int = 0
    course_classes: tuple[str, ...] = COURSE_CLASSES
    late: list[int] = []  # the ranks that the straggler analysis names, the worst first
    median_rank: int | None = None  # the one with the median iteration that is not late, to look at beside a late one


def write_fleet(report: Report, files: Mapping[int, int], courses: Mapping[str, bytes]) -> bytes:
    """The file. `files` holds the bytes of each rank's own file, where it has one; `courses` those of each source."""
    ranks = report.ranks
    shifts = _find_shifts(ranks)
    absolute = [
        rank.start_ns + shift
        for rank, shift in zip(ranks, shifts, strict=True)
        if rank.time_origin == "unix" and rank.start_ns
    ]
    origin = min(absolute, default=0)
    each = max(1, MOST_CELLS // max(1, len(ranks)))
    cells = [row for number, rank in enumerate(ranks) for row in _cells(number, rank, origin - shifts[number], each)]
    cells = cells[:MOST_CELLS]
    columns = list(zip(*cells, strict=True)) or [()] * len(CELL_TYPES)
    body = Body()
    block = body.add(
        shuffle([np.array(values, kind) for values, kind in zip(columns, CELL_TYPES.values(), strict=True)])
    )
    moments = _count_moments(ranks, courses)
    course = b"".join(courses[rank.source][: each * count] for rank, count in zip(ranks, moments, strict=True) if count)
    late = [] if report.stragglers is None else [one.rank for one in report.stragglers.ranks]
    header = FleetHeader(
        made_by=__version__,
        origin_ns=str(origin),
        span_ns=max((cell[2] + cell[3] for cell in cells), default=0),
        ranks=FleetRanks(
            rank=[rank.rank for rank in ranks],
            host=[rank.host_name[:200] for rank in ranks],
            kind=[rank.kind for rank in ranks],
            detail=[_detail(rank, files) for rank in ranks],
            file_bytes=[files.get(-1 if rank.rank is None else rank.rank, 0) for rank in ranks],
            shift_ns=shifts,
        ),
        cells=block,
        cell_count=len(cells),
        cells_left_out=sum(len(rank.iterations) for rank in ranks) - len(cells),
        moments=moments,
        courses=body.add(course),
        course_count=len(course),
        late=late,
        median_rank=_median_rank(ranks, late),
    )
    return pack(header, body)


def _find_shifts(ranks: Sequence[Rank]) -> list[int]:
    """The time to add to those of each rank: 0, or what brings the ends of its iterations to those of the others.

    Clocks of machines may be seconds apart, and then no two ranks would be in one view. A shift below the length of an
    iteration may be true lateness, and is left.
    """
    ends: dict[int, list[int]] = defaultdict(list)
    for rank in ranks:
        for one in rank.iterations if rank.time_origin == "unix" else []:
            ends[one.index].append(one.start_ns + one.duration_ns)
    middle = {index: median_low(each) for index, each in ends.items()}
    shifts = []
    for rank in ranks:
        shift = 0
        if rank.time_origin == "unix" and rank.iterations:
            apart = median_low([one.start_ns + one.duration_ns - middle[one.index] for one in rank.iterations])
            typical = median_low([one.duration_ns for one in rank.iterations])
            shift = -apart if abs(apart) > typical else 0
        shifts.append(shift)
    return shifts


def _detail(rank: Rank, files: Mapping[int, int]) -> Detail:
    if rank.rank is not None and rank.rank in files:
        return "full"
    return "stages" if rank.iterations else "none"


def _cells(number: int, rank: Rank, origin: int, most: int) -> list[tuple[int, ...]]:
    """A row of columns for each iteration of a rank."""
    if rank.time_origin != "unix":
        origin = rank.start_ns
    stages = {stage.stage: stage.iterations_ns for stage in (rank.stages.stages if rank.stages else [])}
    rows = []
    for position, one in enumerate(rank.iterations[:most]):
        measures = [UNKNOWN if one.time_ns is None else int(getattr(one.time_ns, name)) for name in MEASURES]
        each = [stages.get(name, []) for name in STAGES]
        shares = [values[position] if position < len(values) else UNKNOWN for values in each]
        rows.append((number, one.index, one.start_ns - origin, one.duration_ns, *measures, *shares))
    return rows


def _count_moments(ranks: Sequence[Rank], courses: Mapping[str, bytes]) -> list[int]:
    """The number of moments of each iteration in a rank's course, 0 where that is not one of its iterations."""
    counts, total = [], 0
    for number, rank in enumerate(ranks):
        course = courses.get(rank.source, b"")
        count = len(course) // max(1, len(rank.iterations))
        whole = count * len(rank.iterations) == len(course) and all(one < len(COURSE_CLASSES) for one in set(course))
        fits = total + len(course) <= MOST_MOMENTS and number < MOST_CELLS
        counts.append(count if whole and fits else 0)
        total += len(course) if counts[-1] else 0
    return counts


def _median_rank(ranks: list[Rank], late: Collection[int]) -> int | None:
    """The rank with the median mean iteration of those that are not late: what a late rank is looked at beside."""
    means = sorted(
        (sum(one.duration_ns for one in rank.iterations) // len(rank.iterations), rank.rank)
        for rank in ranks
        if rank.iterations and rank.rank is not None and rank.rank not in late
    )
    return means[len(means) // 2][1] if means else None
