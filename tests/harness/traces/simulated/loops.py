"""Training loops of data-parallel, tensor-parallel and sharded jobs, as each of their ranks runs them."""

from collections.abc import Callable

from harness.traces.simulated.groups import ProcessGroup, ProcessGroups
from harness.traces.simulated.layers import (
    attend,
    attend_backward,
    feed_backward,
    feed_forward,
    measure_loss,
    optimize,
)
from harness.traces.simulated.nodes import Work
from harness.traces.simulated.rank import COMPUTE, SimulatedRank, Waits

Loop = Callable[[SimulatedRank, ProcessGroups], Callable[[], Waits]]
_TENSOR, _BUCKETS, _GATHERS, _SCATTERS, _REPLICAS, _EXPERTS = 22, 24, 25, 27, 29, 41  # streams


def run_loop(rank: SimulatedRank, iteration: Callable[[], Waits]) -> Waits:
    """All iterations of one rank."""
    shape = rank.shape
    for number in range(shape.warm + shape.iterations):
        rank.begin_iteration()
        begin = rank.time
        yield from iteration()
        yield from rank.keep_queue()
        if shape.asks_loss:
            reading = rank.time
            yield from rank.wait_for(rank.streams[COMPUTE])
            rank.operator("aten::item", reading)
        rank.spend(30, launches=False)
        if shape.marks == "profiler_step":
            rank.annotate(f"ProfilerStep#{20 + number}", begin)
    rank.begin_iteration()


def exchange(rank: SimulatedRank, group: ProcessGroup | None) -> None:
    """Tokens to the experts of all ranks of the group, or back."""
    if rank.batch.loads and group is not None:
        behind = [rank.streams[COMPUTE]]
        elements = round(4096 * 1024 * rank.batch.tokens)
        rank.join(
            rank.collective(
                group, "all_to_allv", 0.4 * rank.shape.net_us, stream=_EXPERTS, after=behind, elements=elements
            )
        )


def replicated(rank: SimulatedRank, groups: ProcessGroups) -> Callable[[], Waits]:
    """DDP, with tensor parallelism inside where `tp` is more than one."""
    shape = rank.shape
    first, place = rank.rank // shape.tp * shape.tp, rank.rank % shape.tp
    tensor = groups.get(f"tp{first}", range(first, first + shape.tp)) if shape.tp > 1 else None
    data = groups.get(f"dp{place}", range(place, shape.ranks, shape.tp)) if shape.dp > 1 else None

    def reduce_tensors() -> None:
        if tensor is not None:
            behind = [rank.streams[COMPUTE]]
            elements = 4096 * 4096
            rank.join(
                rank.collective(tensor, "allreduce", shape.net_us, stream=_TENSOR, after=behind, elements=elements)
            )

    def step(reduced: list[Work], *, is_last: bool) -> Waits:
        rank.thread = "main"
        rank.load()
        yield from rank.copy_batch()
        for _ in range(shape.layers):
            attend(rank)
            reduce_tensors()
            exchange(rank, data)
            feed_forward(rank)
            exchange(rank, data)
            reduce_tensors()
            yield from rank.keep_queue()
        measure_loss(rank)
        rank.thread = "autograd"
        bucket_us = shape.net_us * shape.layers / shape.buckets
        for layer in reversed(range(shape.layers)):
            exchange(rank, data)
            feed_backward(rank)
            exchange(rank, data)
            reduce_tensors()
            attend_backward(rank)
            reduce_tensors()
            if is_last and data is not None and layer % max(1, shape.layers // shape.buckets) == 0:
                behind = [rank.streams[COMPUTE]]
                reduced.append(
                    rank.collective(data, "allreduce", bucket_us, stream=_BUCKETS, after=behind, elements=13_000_000)
                )
            yield from rank.keep_queue()

    def iteration() -> Waits:
        reduced: list[Work] = []
        for number in range(shape.accumulation):
            yield from step(reduced, is_last=number == shape.accumulation - 1)
        rank.thread = "main"
        if reduced:
            rank.join(reduced[-1])
        optimize(rank)

    return iteration


def sharded(rank: SimulatedRank, groups: ProcessGroups) -> Callable[[], Waits]:
    """FSDP: weights gathered ahead, gradients scattered behind; with replicas (HSDP) where `dp` is more than one."""
    shape = rank.shape
    first, place = rank.rank // shape.shards * shape.shards, rank.rank % shape.shards
    shards = groups.get(f"shard{first}", range(first, first + shape.shards))
    replicas = groups.get(f"replicas{place}", range(place, shape.ranks, shape.shards)) if shape.dp > 1 else None

    def gather(after: list[Work]) -> Work:
        return rank.collective(
            shards, "_allgather_base", shape.net_us, stream=_GATHERS, after=after, elements=4_000_000
        )

    def forward(freed: list[Work]) -> Waits:
        ahead = gather([rank.streams[COMPUTE]])
        for layer in range(shape.layers):
            here = ahead
            if layer + 1 < shape.layers:
                if shape.holds_gathers and len(freed) > 2:
                    yield from rank.wait_for(freed[-2], "cudaEventSynchronize")
                ahead = gather([freed[max(len(freed) - 2, 0)]] if shape.holds_gathers else [])
            rank.join(here)
            rank.kernel("split_with_sizes_copy_out_kernel", 12, "fsdp::split_with_sizes_copy")
            attend(rank)
            exchange(rank, shards)
            feed_forward(rank)
            exchange(rank, shards)
            freed.append(rank.streams[COMPUTE])
            yield from rank.keep_queue()

    def backward(freed: list[Work]) -> Waits:
        ahead, reduced = gather([]), None
        for layer in reversed(range(shape.layers)):
            here = ahead
            if layer > 0:
                ahead = gather([freed[-1]] if shape.holds_gathers else [])
            rank.join(here)
            rank.kernel("split_with_sizes_copy_out_kernel", 12, "fsdp::split_with_sizes_copy")
            exchange(rank, shards)
            feed_backward(rank)
            exchange(rank, shards)
            attend_backward(rank)
            freed.append(rank.streams[COMPUTE])
            rank.kernel("chunk_cat_cuda_kernel", 12, "fsdp::chunk_cat")
            behind = [rank.streams[COMPUTE]]
            reduced = rank.collective(
                shards, "_reduce_scatter_base", 1.1 * shape.net_us, stream=_SCATTERS, after=behind, elements=4_000_000
            )
            if replicas is not None:
                reduced = rank.collective(
                    replicas, "allreduce", 0.5 * shape.net_us, stream=_REPLICAS, after=[reduced], elements=1_000_000
                )
            yield from rank.keep_queue()
        assert reduced is not None
        rank.thread = "main"
        rank.join(reduced)

    def iteration() -> Waits:
        rank.thread = "main"
        rank.load()
        yield from rank.copy_batch()
        freed = [rank.streams[COMPUTE]]
        yield from forward(freed)
        measure_loss(rank)
        rank.thread = "autograd"
        yield from backward(freed)
        optimize(rank)

    return iteration
