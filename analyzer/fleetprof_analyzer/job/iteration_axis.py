"""Puts the iterations of several ranks side by side: which of them are the same one.

Guarantees: pure; by number only where one source proves the numbers of all ranks, else by position, and which is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fleetprof_api.report.report import Rank


@dataclass(frozen=True, slots=True)
class IterationAxis:
    """`labels` are the iterations in order; `columns[i][k]` is where the k-th iteration of the i-th rank belongs."""

    labels: list[int]
    by: Literal["index", "position"]
    columns: list[list[int]]

    def place(self, row: int, values: Sequence[int | None]) -> list[int | None]:
        """The values of one rank's iterations, laid out along the axis."""
        laid: list[int | None] = [None] * len(self.labels)
        for column, value in zip(self.columns[row], values, strict=True):
            laid[column] = value
        return laid


def match_iterations(ranks: Sequence[Rank]) -> IterationAxis:
    """The axis of all these ranks' iterations."""
    indices = [[iteration.index for iteration in rank.iterations] for rank in ranks]
    sources = {rank.index_from for rank in ranks if rank.iterations}
    distinct = all(len(set(each)) == len(each) for each in indices)
    if sources in ({"agent"}, {"profiler_step"}) and distinct:
        labels = sorted({index for each in indices for index in each})
        column_of = {index: column for column, index in enumerate(labels)}
        return IterationAxis(labels, "index", [[column_of[index] for index in each] for each in indices])
    longest = max((len(each) for each in indices), default=0)
    return IterationAxis(list(range(longest)), "position", [list(range(len(each))) for each in indices])
