"""Differences between ranks in words, for a terminal.

Guarantees: shows what passes a threshold only, and no verdict.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.quantities import amount
from fleetprof_api.report.heterogeneity import Box, Heterogeneity, RankTable

from fleetprof_analyzer.rank.iteration_measures import IDLE, STAGE

_WORTH_PERMILLE: Final = 20
_MOST_RANKS: Final = 6


def measure_words(measure: str) -> str:
    """`stage_data_loading` as `data loading (stage)`, `idle_host` as `idle: host`."""
    for prefix, words in ((STAGE, "{} (stage)"), (IDLE, "idle: {}")):
        if measure.startswith(prefix):
            return words.format(measure.removeprefix(prefix).replace("_", " "))
    return measure.replace("_", " ")


def find_differences(section: Heterogeneity) -> list[tuple[RankTable, Box]]:
    """The tables with ranks beyond the whiskers by 2 % of an iteration (of the median, for energy), or more."""
    iteration = next((table.box.median for table in section.tables if table.measure == "iteration" and table.box), 0)
    found = []
    for table in section.tables:
        box = table.box
        if box is not None and box.outside_count:
            whole = iteration if table.unit == "ns" else box.median
            beyond = max(box.low_whisker - box.min, box.max - box.high_whisker)
            if 1000 * beyond >= _WORTH_PERMILLE * whole:
                found.append((table, box))
    return found


def outside_words(box: Box) -> str:
    """`rank 2`, `ranks 2, 5 and 14 more`."""
    shown = ", ".join(map(str, box.outside[:_MOST_RANKS]))
    more = box.outside_count - min(len(box.outside), _MOST_RANKS)
    if not shown:
        return f"{more} traces" if more != 1 else "a trace"
    return f"rank{'s' if box.outside_count > 1 else ''} {shown}" + (f" and {more} more" if more else "")


def list_differences(sections: Sequence[Heterogeneity]) -> list[str]:
    """The section's lines for a terminal; none where no rank stands apart."""
    lines = []
    for section in sections:
        for table, box in find_differences(section):
            low, middle, high = (amount(value, table.unit) for value in (box.q1, box.median, box.q3))
            numbers = f"  {measure_words(table.measure):<24} {middle:>10}  [{low}, {high}]"
            lines.append(f"{numbers}  apart: {outside_words(box)}")
    return ["Where ranks differ (median over ranks, middle half; no verdict)", *lines] if lines else []
