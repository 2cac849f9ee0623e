"""The iterations of one run as samples: the job's mean of each measure, iteration by iteration.

Guarantees: pure; only iterations that are known to be whole, on nine ranks of ten or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.job.iteration_axis import match_iterations
from fleetprof_analyzer.rank.iteration_measures import MEASURES

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class IterationSamples:
    """`values[name]`, shape (n,), for every measure that is known in all n iterations; `labels` are their numbers."""

    labels: list[int]
    values: dict[str, Floats]


def take_samples(ranks: Sequence[Rank]) -> IterationSamples:
    """The job's iterations over these ranks, at least one."""
    axis = match_iterations(ranks)
    whole = np.array(
        [
            axis.place(number, [1 if iteration.complete else None for iteration in rank.iterations])
            for number, rank in enumerate(ranks)
        ],
        np.float64,
    )
    wanted = 10 * np.nansum(whole, axis=0) >= 9 * len(ranks)
    values = {}
    for name, (_, read) in MEASURES.items():
        table = np.array([axis.place(number, read(rank)) for number, rank in enumerate(ranks)], np.float64)
        table = np.where(np.isnan(whole), np.nan, table)[:, wanted]
        known = (~np.isnan(table)).sum(axis=0)
        if table.size and (10 * known >= 9 * len(ranks)).all():
            values[name] = np.nansum(table, axis=0) / known
    labels = [label for label, there in zip(axis.labels, wanted.tolist(), strict=True) if there]
    return IterationSamples(labels, values)
