"""All ranks of a report by columns: one array per measure.

Guarantees: pure; equal indices are one rank, in the order of the report; a measure that no rank has is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from statistics import median_low
from typing import Final, get_args

from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import StageName
from fleetprof_api.slices.ranks import RankSlice

from fleetprof_analyzer.slices.chosen_ranks import choose_ranks
from fleetprof_analyzer.slices.figures import lateness_by_rank

Read = Callable[[Rank], int | None]


def make_ranks(report: Report, most: int) -> RankSlice:
    """The slice, with at most so many ranks."""
    ranks = choose_ranks(report, most)
    late = lateness_by_rank(report)
    columns = {name: [read(rank) for rank in ranks] for name, _, read in _measures()}
    columns["lateness"] = [late.get(rank.rank) if rank.rank is not None else None for rank in ranks]
    units = {name: unit for name, unit, _ in _measures()} | {"lateness": "ns"}
    shown = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    return RankSlice(
        rank=[rank.rank for rank in ranks],
        source=[rank.source for rank in ranks],
        kind=[rank.kind for rank in ranks],
        host_name=[rank.host_name for rank in ranks],
        device_name=[rank.device_name for rank in ranks],
        iteration_count=[len(rank.iterations) for rank in ranks],
        measures=shown,
        units={name: units[name] for name in shown},
        cut=len(report.ranks) - len(ranks),
    )


def _measures() -> Iterator[tuple[str, str, Read]]:
    for name in TimeBreakdown.__struct_fields__:
        yield name, "ns", lambda rank, name=name: getattr(rank.time_ns, name)  # type: ignore[misc]
    for name in IdleCauses.__struct_fields__:
        yield f"idle_{name}", "ns", lambda rank, name=name: getattr(rank.idle_ns, name, None)  # type: ignore[misc]
    for name in get_args(StageName):
        yield f"stage_{name}", "ns", lambda rank, name=name: _stage(rank, name)  # type: ignore[misc]
    for name, (unit, read) in _OTHERS.items():
        yield name, unit, read


def _stage(rank: Rank, name: str) -> int | None:
    if rank.stages is None or not rank.stages.stages:
        return None
    return next((stage.time_ns for stage in rank.stages.stages if stage.stage == name), 0)


def _iteration(rank: Rank) -> int | None:
    return median_low([one.duration_ns for one in rank.iterations]) if rank.iterations else None


def _energy(rank: Rank) -> int | None:
    known = [one.energy_mj for one in rank.iterations if one.energy_mj is not None]
    return sum(known) if known else None


def _memory(rank: Rank) -> int | None:
    known = [peak.reserved_bytes or peak.allocated_bytes for peak in rank.memory if peak.device != "cpu"]
    return max((size for size in known if size is not None), default=None)


_OTHERS: Final[Mapping[str, tuple[str, Read]]] = {
    "iteration": ("ns", _iteration),
    "data_loading": ("ns", lambda rank: rank.data_loading_ns),
    "energy": ("mJ", _energy),
    "iteration_energy": ("mJ", lambda rank: rank.iteration_energy_mj),
    "sample_energy": ("µJ", lambda rank: rank.sample_energy_uj),
    "memory": ("bytes", _memory),
    "launches": ("count", lambda rank: rank.launches.launches if rank.launches is not None else None),
}
