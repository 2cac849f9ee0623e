"""What to try against the fault that a straggler verdict names: by its cause, never by the verdict alone.

Guarantees: pure; "" where nobody is to be helped.
"""

from typing import Final

from fleetprof_api.report.stragglers import Cause, Stragglers

_BY_CAUSE: Final[dict[Cause, str]] = {
    "data_loading": "more workers and prefetching on that rank; look at its storage, at its shard, and for samples "
    "that take longer",
    "host": "look at what else runs on that rank's cores (other processes, affinity, a container's CPU limit), and "
    "at what its Python does that the others' does not: a capture with stacks shows it (collect: Stacks)",
    "garbage_collection": "gc.freeze() after the start, gc.disable(), and gc.collect() at the same steps on all ranks",
    "cpu_contention": "give that rank cores of its own: look at what else runs there (other processes, affinity, a "
    "container's CPU limit), and use no more threads than cores (OMP_NUM_THREADS, torch.set_num_threads)",
    "unequal_work": "give all ranks even shares, by tokens and not by samples; sort or pack sequences by length",
    "slow_gpu": "run the job with its ranks on other GPUs: if the slowness stays with the GPU, it is the GPU; look "
    "at its clocks, temperature and ECC counts (collect: DeviceMetrics)",
    "throttling": "check that GPU's power limit and temperature (nvidia-smi -q -d PERFORMANCE), and the node's cooling",
    "network": "check that rank's links (nvidia-smi nvlink --errorcounters), its adapter's counters and cable, and "
    "the path that NCCL took (NCCL_DEBUG=INFO)",
    "stage_imbalance": "move layers from the heavy stage to others; the embedding and the head count as layers",
    "mixed": "begin with the largest part of the evidence",
}
_SLOW_LINK: Final = (
    "check the links between these ranks: their nodes' adapters, switch and placement, and NCCL_DEBUG=INFO"
)
_MOVING: Final[dict[Cause, str]] = {
    "unequal_work": "make batches of even work: sort or pack sequences by length, and share them out by tokens, not "
    "by samples",
    "data_loading": "more workers and prefetching, so that a slow batch is ready in time",
    "garbage_collection": "gc.disable(), and gc.collect() at the same steps on all ranks",
    "host": "make pauses (checkpoints, logging, evaluation) at the same steps on all ranks",
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
