"""What a report says of energy: of an iteration, of a training sample, and the GPU that takes more than its peers."""

from fleetprof_api.report.energy import WorstGpu
from fleetprof_api.report.report import Report

from fleetprof_analyzer.views.text import amount, plain


def list_energy(report: Report) -> list[str]:
    """Sentences; none where nothing is known."""
    said = []
    energy = report.energy
    if energy is not None:
        samples = energy.samples_per_iteration
        each = f", {amount(round(energy.mean_mj / samples), 'mJ')} per training sample" if samples else ""
        ranks = f"{energy.ranks} rank{'s' if energy.ranks != 1 else ''}"
        said.append(f"{amount(energy.mean_mj, 'mJ')} per iteration{each}, over the sampled devices of {ranks}.")
    if report.worst_gpu is not None:
        said.append(_say_worst(report.worst_gpu))
    return said


def _say_worst(worst: WorstGpu) -> str:
    found = []
    if worst.energy_permille is not None:
        found.append(f"takes {worst.energy_permille / 1000:.2f} times the energy of an iteration")
    if worst.sm_clock_permille is not None:
        found.append(f"runs at {worst.sm_clock_permille / 1000:.2f} times the clock")
    where = f" on node {plain(worst.node_name)}" if worst.node_name else ""
    return (
        f"The GPU of rank {worst.rank}{where} {' and '.join(found)} of {worst.peers} others with the same kernels: "
        "drain the node, and have the GPU and its cooling looked at."
    )
