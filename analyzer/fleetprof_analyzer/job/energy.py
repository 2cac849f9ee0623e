"""The energy of the whole job per iteration: the sum over its GPU ranks (docs/measures.md#energy).

Guarantees: pure; no sum where a rank's part is not known.
"""

from collections.abc import Sequence

from fleetprof_api.report.energy import Energy
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.job.iteration_axis import match_iterations


def add_energy(ranks: Sequence[Rank]) -> Energy | None:
    """The sums; None where no iteration has one."""
    chosen = [rank for rank in ranks if rank.kind == "gpu"]
    axis = match_iterations(chosen)
    rows = [
        axis.place(number, [iteration.energy_mj for iteration in rank.iterations]) for number, rank in enumerate(chosen)
    ]
    sums = [_add(column) for column in zip(*rows, strict=True)]
    known = [value for value in sums if value is not None]
    if not known:
        return None
    return Energy(
        ranks=len(chosen),
        iterations=axis.labels,
        iterations_by=axis.by,
        energy_mj=sums,
        mean_mj=sum(known) // len(known),
    )


def _add(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
