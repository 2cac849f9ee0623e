"""The efficiency of a job's ranks, by kind of device (docs/measures.md#efficiency).

Guarantees: pure; utilization is told only where the device's peak is published for all data types, and no work is
hidden in graphs, in fused kernels or behind unknown shapes.
"""

from collections import Counter
from collections.abc import Sequence

from fleetprof_api.report.efficiency import Efficiency, RankFlops, TypeFlops
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.job.efficiency.peaks import find_peak, reach
from fleetprof_analyzer.job.efficiency.roofline import merge_operators


def measure_efficiency(ranks: Sequence[Rank], tree: ModuleTree | None) -> list[Efficiency]:
    """One of each kind of device, the most ranks first; `tree`: that of all ranks."""
    by_device: dict[str, list[RankFlops]] = {}
    for rank in ranks:
        if rank.flops is not None and rank.flops.flops:
            name = rank.device_name if rank.kind == "gpu" else ""
            by_device.setdefault(name, []).append(rank.flops)
    again = _find_recomputed(tree)
    found = [_measure(name, group, again) for name, group in by_device.items()]
    return sorted(found, key=lambda one: (-one.ranks, one.device_name))


def _measure(device_name: str, ranks: Sequence[RankFlops], again: int | None) -> Efficiency:
    flops: Counter[str] = Counter()
    for rank in ranks:
        flops.update({one.data_type: one.flops for one in rank.by_type})
    types = {kind: count // len(ranks) for kind, count in flops.most_common()}
    iteration_ns = sum(rank.iteration_ns for rank in ranks) // len(ranks)
    total = sum(types.values())
    hidden = sorted({one for rank in ranks for one in rank.hidden}, reverse=True)
    unknown = max(rank.unknown_operators for rank in ranks)
    peak = find_peak(device_name)
    run_as = {"float32": "tfloat32"} if any(rank.single_precision == "tfloat32" for rank in ranks) else {}
    seconds = None if peak is None else reach(peak, {run_as.get(kind, kind): count for kind, count in types.items()})
    is_whole = seconds is not None and not hidden and not unknown and iteration_ns > 0
    used = round(1000 * seconds / (iteration_ns / 1e9)) if is_whole and seconds is not None else None
    return Efficiency(
        device_name=device_name,
        ranks=len(ranks),
        flops=total,
        by_type=[TypeFlops(data_type=kind, flops=count) for kind, count in types.items()],
        iteration_ns=iteration_ns,
        flops_per_second=total * 10**9 // iteration_ns if iteration_ns else 0,
        peak_flops_per_second=round(total / seconds) if seconds else None,
        peak_source="" if peak is None else peak.source,
        hardware_utilization_permille=used,
        model_utilization_permille=None if used is None or again is None else used * (1000 - again) // 1000,
        recomputed_permille=again,
        unknown_operators=unknown,
        hidden=hidden,
        peak_bytes_per_second=None if peak is None else peak.memory_gigabytes * 10**9,
        operators=merge_operators(
            [rank.operators for rank in ranks],
            round(total / seconds) if seconds else None,
            None if peak is None else peak.memory_gigabytes * 10**9,
        ),
    )


def _find_recomputed(tree: ModuleTree | None) -> int | None:
    """The part of the operations that is computed again in backward, ‰; None where no whole iteration was marked."""
    if tree is None or tree.ended_early or not tree.whole.flops:
        return None
    return round(1000 * tree.recompute.flops / tree.whole.flops)
