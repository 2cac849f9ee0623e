"""Rank × iteration × measures of a report, for heat maps.

Guarantees: pure; the report's own tables, which are bounded; of a single rank, which has none, the same measures.
"""

from collections.abc import Collection
from typing import Final

from fleetprof_analyzer.rank.iteration_measures import MEASURES
from fleetprof_api.report.heterogeneity import Heterogeneity, RankTable
from fleetprof_api.report.report import Rank, Report

from fleetprof_webui.models.tables import IterationPage, IterationSection

_MOST_COLUMNS: Final = 10_000


def list_iterations(report: Report, measures: Collection[str]) -> IterationPage:
    """One section per kind of ranks; `measures` names those that are wanted, none: all."""
    sections = [_of_many(section) for section in report.heterogeneity]
    compared = {section.kind for section in report.heterogeneity}
    sections += [_of_one(rank) for rank in report.ranks if rank.iterations and rank.kind not in compared]
    return IterationPage(sections=[_choose(section, measures) for section in sections])


def _of_many(section: Heterogeneity) -> IterationSection:
    return IterationSection(
        kind=section.kind,
        ranks=section.ranks,
        iterations=section.iterations,
        iterations_by=section.iterations_by,
        recorded=section.recorded,
        tables=section.tables,
    )


def _of_one(rank: Rank) -> IterationSection:
    columns = [(name, unit, read(rank)[:_MOST_COLUMNS]) for name, (unit, read) in MEASURES.items()]
    return IterationSection(
        kind=rank.kind,
        ranks=[rank.rank],
        iterations=[one.index for one in rank.iterations[:_MOST_COLUMNS]],
        iterations_by="index",
        recorded=len(rank.iterations),
        tables=[RankTable(measure=name, unit=unit, values=[row]) for name, unit, row in columns if any(row)],
    )


def _choose(section: IterationSection, measures: Collection[str]) -> IterationSection:
    return IterationSection(
        kind=section.kind,
        ranks=section.ranks,
        iterations=section.iterations,
        iterations_by=section.iterations_by,
        recorded=section.recorded,
        # The boxes have a page of their own.
        tables=[
            RankTable(measure=table.measure, unit=table.unit, values=table.values)
            for table in section.tables
            if not measures or table.measure in measures
        ],
    )
