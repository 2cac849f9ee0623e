"""Differences between the ranks of a report: a box plot per measure, and the density behind it for a violin. Pure."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from fleetprof_api.report.heterogeneity import RankTable
from fleetprof_api.report.report import Report

from fleetprof_webui.models.report import BoxesOfKind, BoxPage, MeasureBox

_BINS: Final = 32


def list_boxes(report: Report) -> BoxPage:
    """The boxes of a report, by kind of ranks."""
    return BoxPage(
        sections=[
            BoxesOfKind(
                kind=section.kind,
                boxes=[box for table in section.tables if (box := _describe(table)) is not None],
            )
            for section in report.heterogeneity
        ]
    )


def _describe(table: RankTable) -> MeasureBox | None:
    if table.box is None:
        return None
    values = [value for value in chain.from_iterable(table.values) if value is not None]
    low, high = min(values, default=0), max(values, default=0)
    return MeasureBox(
        measure=table.measure,
        unit=table.unit,
        box=table.box,
        density=count_in_bins(values, low, high),
        density_from=low,
        density_to=high,
    )


def count_in_bins(values: Sequence[int], low: int, high: int) -> list[int]:
    """The number of `values`, all from `low` to `high`, lie in each of equal bins; one bin where all are equal."""
    if high <= low:
        return [len(values)]
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, (value - low) * _BINS // (high - low))] += 1
    return counts
