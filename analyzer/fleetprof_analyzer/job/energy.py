"""The energy of the whole job per iteration, and the GPU that takes more than its peers (docs/measures.md#energy).

Guarantees: pure; no sum where a rank's part is not known, no energy of a sample where a rank of the job is missing.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from fleetprof_api.report.energy import Energy, WorstGpu
from fleetprof_api.report.report import Rank
from fleetprof_api.worst_gpu import GpuFigures, find_worst

from fleetprof_analyzer.job.equal_work import group_equal_work
from fleetprof_analyzer.job.iteration_axis import match_iterations
from fleetprof_analyzer.rank.measures.kernels.kernels import KernelGroup


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
        samples_per_iteration=_find_samples(chosen),
    )


def find_worst_gpu(ranks: Sequence[Rank], kernels: Mapping[int | None, Sequence[KernelGroup]]) -> WorstGpu | None:
    """The GPU of a job that is clearly worse than others with the same kernels; `kernels` by rank number."""
    chosen = {rank.rank: rank for rank in ranks if rank.kind == "gpu" and rank.rank is not None}
    groups = group_equal_work([(number, rank.device_name, kernels.get(number, ())) for number, rank in chosen.items()])
    worst = find_worst([[_figures(number, chosen[number]) for number in group] for group in groups])
    if worst is None:
        return None
    rank = chosen[worst.rank]
    return WorstGpu(
        rank=worst.rank,
        node_name=rank.node_name or rank.host_name,
        device_name=rank.device_name,
        energy_permille=_permille(worst.energy_over_peers),
        sm_clock_permille=_permille(worst.clock_under_peers),
        peers=worst.peers,
    )


def _figures(number: int, rank: Rank) -> GpuFigures:
    energies = [iteration.energy_mj for iteration in rank.iterations if iteration.energy_mj is not None]
    clocks = [v for series in rank.device_series if series.name == "sm_clock" for v in series.values if v is not None]
    return GpuFigures(number, median(energies) if energies else None, fmean(clocks) if clocks else None)


def _find_samples(ranks: Sequence[Rank]) -> int | None:
    """The label's number, where all pods that have it say the same, and all ranks of the job are in the sum."""
    declared = {rank.samples_per_iteration for rank in ranks if rank.samples_per_iteration is not None}
    whole = all(rank.world_size in (None, len(ranks)) for rank in ranks)
    return declared.pop() if len(declared) == 1 and whole else None


def _permille(share: float | None) -> int | None:
    return None if share is None else round(1000 * share)


def _add(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
