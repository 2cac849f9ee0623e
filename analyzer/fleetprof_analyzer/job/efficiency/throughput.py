"""A job's rows, indices and labelled samples per second (docs/measures.md#throughput).

Guarantees: pure; None where no iteration is complete or nothing says what an iteration goes through.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.efficiency import Throughput
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.report import Rank

_NS_PER_HOUR: Final = 3600 * 10**9


def measure_throughput(ranks: Sequence[Rank], tree: ModuleTree | None) -> Throughput | None:
    """`tree`: that of all ranks."""
    times = [
        [one.duration_ns for one in rank.iterations if one.complete is not False and one.duration_ns] for rank in ranks
    ]
    means = [sum(one) / len(one) for one in times if one]
    labels = {rank.samples_per_iteration for rank in ranks}
    label = labels.pop() if len(labels) == 1 else None
    rows, indices = (None, None) if tree is None else (tree.rows, tree.indices)
    if not means or (rows is None and indices is None and label is None):
        return None
    mean_ns = sum(means) / len(means)
    world = max((rank.world_size for rank in ranks if rank.world_size is not None), default=0)
    samples = rows if label is None else label / max(world, len(ranks))  # of one rank in an iteration
    energies = [rank.iteration_energy_mj for rank in ranks]
    known = [energy for energy in energies if energy is not None]
    has_gpus = all(rank.kind == "gpu" for rank in ranks)
    per_second = [None if count is None else count * 1e9 / mean_ns for count in (rows, indices, label)]
    return Throughput(
        ranks=len(means),
        iteration_ns=round(mean_ns),
        rows_per_second=per_second[0],
        indices_per_second=per_second[1],
        samples_per_second=per_second[2],
        gpu_hours_per_thousand=mean_ns / samples / _NS_PER_HOUR * 1000 if samples and has_gpus else None,
        joules_per_thousand=sum(known) / len(known) / samples if samples and len(known) == len(energies) else None,
    )
