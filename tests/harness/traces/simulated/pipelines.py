"""Training loops whose ranks do different things, or whose input is a pipeline of its own."""

from collections.abc import Callable

from harness.traces.simulated.groups import ProcessGroups
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

_BUCKETS, _WORLD, _IDS, _POOLED = 24, 39, 21, 23  # streams
_RECEIVE, _SEND, _RECEIVE_BACK, _SEND_BACK = 31, 33, 35, 37
_BATCH, _DISTRIBUTION = 14, 15


def staged(rank: SimulatedRank, groups: ProcessGroups) -> Callable[[], Waits]:
    """1F1B: `pp` stages, whose `dp` ranks are neighbours; sends and receives on streams of their own."""
    shape = rank.shape
    stage, replica = rank.rank // shape.dp, rank.rank % shape.dp
    is_first, is_last = stage == 0, stage == shape.pp - 1
    members = range(stage * shape.dp, (stage + 1) * shape.dp)
    data = groups.get(f"dp{stage}", members) if shape.dp > 1 else None
    world = groups.get("world", range(shape.ranks))

    def pass_on(upper: int, way: str, what: str, stream: int) -> Work:
        pair = [upper * shape.dp + replica, (upper + 1) * shape.dp + replica]
        group = groups.get(f"p2p_{way}_{pair[0]}_{pair[1]}", pair)
        behind = [rank.streams[COMPUTE]] if what == "send" else []
        return rank.collective(group, what, 0.4 * shape.net_us, stream=stream, after=behind, elements=2_000_000)

    def head(factor: float, operator: str) -> None:
        """The last stage's own work, beside its layers."""
        if shape.last_stage > 1:
            work_us = (shape.last_stage - 1) * shape.layers * factor * shape.kernel_us
            rank.kernel(f"sm90_gemm_head_{operator}", work_us, f"aten::{operator}", threads=600)

    def forward() -> Waits:
        rank.thread = "main"
        if is_first:
            rank.load(60)
            yield from rank.copy_batch()
        else:
            rank.join(pass_on(stage - 1, "forward", "recv", _RECEIVE))
        for _ in range(shape.layers):
            attend(rank)
            feed_forward(rank)
        if is_last:
            head(1.5, "linear")
            measure_loss(rank)
        else:
            pass_on(stage, "forward", "send", _SEND)
        yield from rank.keep_queue()

    def backward(reduced: list[Work], *, reduces: bool) -> Waits:
        rank.thread = "autograd"
        if is_last:
            head(2.1, "mm")
        else:
            rank.join(pass_on(stage, "backward", "recv", _RECEIVE_BACK))
        bucket_us = shape.net_us * shape.layers / shape.buckets
        for layer in reversed(range(shape.layers)):
            feed_backward(rank)
            attend_backward(rank)
            if reduces and data is not None and layer % max(1, shape.layers // shape.buckets) == 0:
                behind = [rank.streams[COMPUTE]]
                reduced.append(
                    rank.collective(data, "allreduce", bucket_us, stream=_BUCKETS, after=behind, elements=13_000_000)
                )
        if not is_first:
            pass_on(stage - 1, "backward", "send", _SEND_BACK)
        yield from rank.keep_queue()
        rank.thread = "main"

    def iteration() -> Waits:
        reduced: list[Work] = []
        ahead = min(shape.pp - 1 - stage, shape.microbatches)
        for _ in range(ahead):
            yield from forward()
        for number in range(shape.microbatches):
            if number < shape.microbatches - ahead:
                yield from forward()
            yield from backward(reduced, reduces=number == shape.microbatches - 1)
        if reduced:
            rank.join(reduced[-1])
        rank.kernel("l2norm_kernel", 20, "aten::linalg_vector_norm")
        behind = [rank.streams[COMPUTE]]
        rank.join(rank.collective(world, "allreduce", 12, stream=_WORLD, after=behind, elements=1))
        optimize(rank)

    return iteration


def recommends(rank: SimulatedRank, groups: ProcessGroups) -> Callable[[], Waits]:
    """A recommender: batches are copied two ahead, their ids exchanged one ahead, embeddings shared among all ranks."""
    shape = rank.shape
    world, ids = groups.get("world", range(shape.ranks)), groups.get("ids", range(shape.ranks))
    exchanged: list[Work] = []

    def annotate(name: str, begin: float) -> None:
        if shape.annotates:
            rank.annotate(f"## {name} ##", begin)

    def copy_next() -> Waits:
        begin = rank.time
        rank.load()
        yield from rank.copy_batch(300, stream=_BATCH)
        annotate("copy_batch_to_gpu", begin)

    def exchange_ids() -> Waits:
        begin = rank.time
        rank.join(rank.streams[_BATCH], _DISTRIBUTION)
        rank.kernel("bucketize_kernel", 30, "fbgemm::bucketize_sparse_features", stream=_DISTRIBUTION, works=False)
        behind = [rank.streams[_DISTRIBUTION]]
        lengths = rank.collective(ids, "all_to_allv", 25, stream=_IDS, after=behind, elements=4096)
        rank.join(lengths, _DISTRIBUTION)
        reading = rank.time
        lengths_here = rank.copy("Memcpy DtoH (Device -> Pinned)", 4, stream=_DISTRIBUTION)
        yield from rank.wait_for(lengths_here)
        rank.operator("aten::item", reading)
        behind = [rank.streams[_DISTRIBUTION]]
        exchanged.append(
            rank.collective(ids, "all_to_allv", 0.6 * shape.net_us, stream=_IDS, after=behind, elements=900_000)
        )
        annotate("start_sparse_data_dist", begin)

    def forward() -> None:
        begin = rank.time
        rank.kernel("tbe_forward_kernel", 1.5 * shape.kernel_us, "fbgemm::split_embedding_codegen_lookup")
        behind = [rank.streams[COMPUTE]]
        pooled = rank.collective(world, "all_to_allv", shape.net_us, stream=_POOLED, after=behind, elements=2_000_000)
        for _ in range(2):
            rank.kernel("sm90_gemm_dense", shape.kernel_us, "aten::linear", threads=264)
        rank.join(pooled)
        for _ in range(shape.layers):
            feed_forward(rank)
        measure_loss(rank)
        annotate("forward", begin)

    def backward() -> Work:
        begin = rank.time
        rank.thread = "autograd"
        for _ in range(shape.layers):
            feed_backward(rank)
        behind = [rank.streams[COMPUTE]]
        back = rank.collective(world, "all_to_allv", shape.net_us, stream=_POOLED, after=behind, elements=2_000_000)
        rank.kernel("sm90_gemm_dense_wgrad", 2 * shape.kernel_us, "aten::mm", threads=264)
        behind = [rank.streams[COMPUTE]]
        reduced = rank.collective(world, "allreduce", shape.net_us, stream=_BUCKETS, after=behind, elements=5_000_000)
        rank.join(back)
        rank.kernel("tbe_backward_kernel", 2 * shape.kernel_us, "fbgemm::split_embedding_backward")
        rank.thread = "main"
        annotate("backward", begin)
        return reduced

    def iteration() -> Waits:
        rank.thread = "main"
        if not exchanged:
            yield from copy_next()
            yield from exchange_ids()
            yield from copy_next()
        begin = rank.time
        rank.join(exchanged[-1])
        rank.spend(10)
        annotate("wait_for_batch", begin)
        yield from exchange_ids()
        yield from copy_next()
        forward()
        rank.join(backward())
        optimize(rank)

    return iteration
