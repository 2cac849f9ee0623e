"""Rank × iteration × measures of a report, for heat maps and box plots.

Guarantees: pure; the report's own tables; of a single rank, which has none, the same measures.
"""

from typing import Final

import msgspec
from fleetprof_api.report.heterogeneity import Heterogeneity, RankTable
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.slices.ranks import IterationSlice

from fleetprof_analyzer.rank.iteration_measures import MEASURES
from fleetprof_analyzer.slices.chosen_ranks import list_late

_MOST_COLUMNS: Final = 10_000


def make_iterations(report: Report, most: int) -> IterationSlice:
    """The slice: one section per kind of ranks, with at most so many ranks."""
    compared = {section.kind for section in report.heterogeneity}
    sections = [*report.heterogeneity]
    sections += [_of_one(rank) for rank in report.ranks if rank.iterations and rank.kind not in compared]
    whole = sum(len(section.ranks) for section in sections)
    late = list_late(report)
    shown = (
        [_cut(section, late, most * len(section.ranks) // whole) for section in sections] if whole > most else sections
    )
    return IterationSlice(sections=shown, cut=whole - sum(len(section.ranks) for section in shown))


def _of_one(rank: Rank) -> Heterogeneity:
    columns = [(name, unit, read(rank)[:_MOST_COLUMNS]) for name, (unit, read) in MEASURES.items()]
    return Heterogeneity(
        kind=rank.kind,
        ranks=[rank.rank],
        iterations=[one.index for one in rank.iterations[:_MOST_COLUMNS]],
        iterations_by="index",
        recorded=len(rank.iterations),
        tables=[RankTable(measure=name, unit=unit, values=[row]) for name, unit, row in columns if any(row)],
    )


def _cut(section: Heterogeneity, late: set[int | None], most: int) -> Heterogeneity:
    order = sorted(range(len(section.ranks)), key=lambda place: (section.ranks[place] not in late, place))
    kept = sorted(order[:most])
    tables = [msgspec.structs.replace(table, values=[table.values[at] for at in kept]) for table in section.tables]
    return msgspec.structs.replace(section, ranks=[section.ranks[at] for at in kept], tables=tables)
