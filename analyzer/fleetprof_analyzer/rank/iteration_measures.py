"""The measures of every iteration of a rank, by name: the rows of tables over ranks, and of comparisons.

Guarantees: pure; one value per iteration of the rank, None where it is not known.
"""

from collections.abc import Callable, Mapping
from typing import Final, get_args

from fleetprof_api.report.heterogeneity import Unit
from fleetprof_api.report.idle_causes import IDLE_CAUSES
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import StageName

Values = list[int | None]

PARTS: Final = ("compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle")
STAGE: Final = "stage_"
IDLE: Final = "idle_"


def _durations(rank: Rank) -> Values:
    return [iteration.duration_ns for iteration in rank.iterations]


def _energies(rank: Rank) -> Values:
    return [iteration.energy_mj for iteration in rank.iterations]


def _part(name: str) -> Callable[[Rank], Values]:
    return lambda rank: [
        None if iteration.time_ns is None else getattr(iteration.time_ns, name) for iteration in rank.iterations
    ]


def _cause(name: str) -> Callable[[Rank], Values]:
    return lambda rank: [
        None if iteration.idle_ns is None else getattr(iteration.idle_ns, name) for iteration in rank.iterations
    ]


def _stage(name: str) -> Callable[[Rank], Values]:
    def values(rank: Rank) -> Values:
        columns = {stage.stage: stage.iterations_ns for stage in rank.stages.stages} if rank.stages is not None else {}
        count = len(rank.iterations)
        # Where nothing marks iterations, stages have their own, and the rank lists none; of many there are no columns.
        if count not in {len(column) for column in columns.values()}:
            return [None] * count
        found = next((column for stage, column in columns.items() if stage == name), [0] * count)
        return list(found) if len(found) == count else [None] * count

    return values


MEASURES: Final[Mapping[str, tuple[Unit, Callable[[Rank], Values]]]] = {
    "iteration": ("ns", _durations),
    **{name: ("ns", _part(name)) for name in PARTS},
    **{IDLE + name: ("ns", _cause(name)) for name in IDLE_CAUSES},
    **{STAGE + name: ("ns", _stage(name)) for name in get_args(StageName)},
    "energy": ("mJ", _energies),
}
"""Unit and reader of each measure (docs/measures.md#heterogeneity), in the order in which they are shown."""
