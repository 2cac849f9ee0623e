"""The section `heterogeneity` of a report: how far the ranks of a job differ, measure by measure.

Guarantees: part of `report.json` and its schema; describes, and blames nobody: who holds the job up is `stragglers`.
Formulas: docs/measures.md#heterogeneity.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Unit = Literal["ns", "mJ"]


class Box(msgspec.Struct, kw_only=True, frozen=True):
    """A box plot over ranks, each rank counting with the median of its iterations. In the unit of its measure."""

    min: int
    low_whisker: Annotated[int, Meta(description="smallest value that is at least q1 - 1.5 (q3 - q1)")]
    q1: int
    median: int
    q3: int
    high_whisker: Annotated[int, Meta(description="largest value that is at most q3 + 1.5 (q3 - q1)")]
    max: int
    outside: Annotated[list[int], Meta(description="outliers, the farthest from the median first, at most 32")] = []
    outside_count: Annotated[int, Meta(description="how many there are", ge=0)] = 0


class RankTable(msgspec.Struct, kw_only=True, frozen=True):
    """One measure: `values[i][j]` is that of `ranks[i]` in `iterations[j]` of the section, null where there is none."""

    measure: str
    unit: Unit
    values: list[list[int | None]]
    box: Box | None = None


class Heterogeneity(msgspec.Struct, kw_only=True, frozen=True):
    """The ranks of one kind side by side; there is none where fewer than two list iterations."""

    kind: Literal["gpu", "cpu"]
    ranks: Annotated[list[int | None], Meta(description="those with iterations, in the order of the report's `ranks`")]
    iterations: Annotated[list[int], Meta(description="columns of the tables: their index, or their position")]
    iterations_by: Annotated[
        Literal["index", "position"], Meta(description="how iterations of different ranks are put side by side")
    ]
    recorded: Annotated[
        int, Meta(description="iterations in all; some are left out where it is above the columns", ge=0)
    ]
    tables: list[RankTable] = []
