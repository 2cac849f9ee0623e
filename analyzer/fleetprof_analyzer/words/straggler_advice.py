"""What to try against the fault that a straggler verdict names: by its cause, never by the verdict alone.

Guarantees: pure; "" where nobody is to be helped.
"""

from typing import Final

from fleetprof_api.report.stragglers import Cause, Stragglers

_BY_CAUSE: Final[dict[Cause, str]] = {
    "data_loading": "more workers and prefetching on that rank; its storage, its shard, and samples that take longer",
    "host": "what else runs on that rank's cores (other processes, affinity, a container's CPU limit), and what its "
    "Python does that the others' does not: its stacks (collect: Stacks)",
    "garbage_collection": "gc.freeze() after the start, gc.disable(), and gc.collect() at the same steps on all ranks",
    "cpu_contention": "cores of its own for that rank: what else runs there (other processes, affinity, a container's "
    "CPU limit), and no more threads than cores (OMP_NUM_THREADS, torch.set_num_threads)",
    "unequal_work": "even shares for all ranks: by tokens, not by samples; sort or pack sequences by length",
    "slow_gpu": "the same job with ranks on other GPUs: what stays slow with the GPU is the GPU; its clocks, "
    "temperature and ECC counts (collect: DeviceMetrics)",
    "throttling": "that GPU's power limit and temperature (nvidia-smi -q -d PERFORMANCE), the node's cooling",
    "network": "that rank's links (nvidia-smi nvlink --errorcounters), its adapter's counters and cable, and the path "
    "that NCCL took (NCCL_DEBUG=INFO)",
    "stage_imbalance": "move layers from the heavy stage to others; the embedding and the head count as layers",
    "mixed": "the largest part of the evidence first",
}
_SLOW_LINK: Final = "the links between these ranks: their node's adapters, switch and placement, NCCL_DEBUG=INFO"
_MOVING: Final[dict[Cause, str]] = {
    "unequal_work": "batches of even work: sort or pack sequences by length, share them out by tokens, not by samples",
    "data_loading": "more workers and prefetching, so that a slow batch is ready in time",
    "garbage_collection": "gc.disable(), and gc.collect() at the same steps on all ranks",
    "host": "pauses (checkpoints, logging, evaluation) at the same steps on all ranks",
}


def straggler_advice(found: Stragglers) -> str:
    """One sentence of things to try."""
    if found.verdict == "moving_imbalance":
        return _MOVING.get(found.cause, "") if found.cause else ""
    if found.verdict == "slow_link" and not found.ranks:
        return _SLOW_LINK
    if found.verdict in ("straggler", "heavy_stage", "slow_link") and found.ranks:
        return _BY_CAUSE[found.ranks[0].cause]
    return ""
