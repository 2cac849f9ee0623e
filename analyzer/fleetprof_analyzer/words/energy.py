"""A report's words on energy: of an iteration, of a training sample, and the GPU that takes more than its peers."""

from collections.abc import Sequence

from fleetprof_api.quantities import amount
from fleetprof_api.report.energy import WorstGpu
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.worst_gpu import CLOCK_UNDER_PEERS, JOULES_OVER_PEERS

from fleetprof_analyzer.words.text import plain


def list_energy(report: Report) -> list[str]:
    """Sentences; none where nothing is known."""
    sentences = []
    energy = report.energy
    if energy is not None:
        samples = energy.samples_per_iteration
        each = f", {amount(round(1000 * energy.mean_mj / samples), 'µJ')} per training sample" if samples else ""
        ranks = f"{energy.ranks} rank{'s' if energy.ranks != 1 else ''}"
        sentences.append(f"{amount(energy.mean_mj, 'mJ')} per iteration{each}, over the sampled devices of {ranks}.")
    if of_ranks := _say_ranks(report.ranks):
        sentences.append(of_ranks)
    if report.worst_gpu is not None:
        sentences.append(_say_worst(report.worst_gpu))
    return sentences


def _say_ranks(ranks: Sequence[Rank]) -> str:
    """The rank with the least part and the one with the most; nothing of a single one."""
    parts = [(rank.sample_energy_uj, rank.rank) for rank in ranks if rank.sample_energy_uj is not None]
    if len(parts) < 2:
        return ""
    by_energy = sorted(parts, key=lambda part: part[0])
    (least, first), (most, last) = by_energy[0], by_energy[-1]
    return (
        f"The energy of one training sample is, by rank, between {amount(least, 'µJ')} (rank {_name(first)}) and "
        f"{amount(most, 'µJ')} (rank {_name(last)})."
    )


def _name(rank: int | None) -> str:
    return "?" if rank is None else str(rank)


def _say_worst(worst: WorstGpu) -> str:
    """Names what is worse; a figure beside it that is like its peers' would mislead."""
    energy, clock = worst.energy_permille, worst.sm_clock_permille
    found = []
    if energy is not None and energy >= 1000 * JOULES_OVER_PEERS:
        found.append(f"takes {energy / 1000:.2f} times the energy of an iteration")
    if clock is not None and clock <= 1000 * CLOCK_UNDER_PEERS:
        found.append(f"runs at {clock / 1000:.2f} times the clock")
    compared = " and ".join(found) or "is worse than the median"
    where = f" on node {plain(worst.node_name)}" if worst.node_name else ""
    return (
        f"The GPU of rank {worst.rank}{where} {compared} of {worst.peers} others with the same kernels: "
        "drain the node and check the GPU and its cooling."
    )
