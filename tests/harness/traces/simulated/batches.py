"""Pipelines whose sends and receives are launched in batches, as Megatron-LM's: 1F1B, plain or interleaved."""

from collections.abc import Callable, Sequence

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
from harness.traces.simulated.rank import COMPUTE, PlannedSend, SimulatedRank, Waits

_BUCKETS, _WORLD, _PIPELINE = 24, 39, 31  # streams
_ELEMENTS = 2_000_000


def batched(rank: SimulatedRank, groups: ProcessGroups) -> Callable[[], Waits]:
    """`pp` stages of `chunks` parts of the model each, whose `dp` ranks are neighbours; one batch behind each turn."""
    shape = rank.shape
    stage, replica = rank.rank // shape.dp, rank.rank % shape.dp
    members = range(stage * shape.dp, (stage + 1) * shape.dp)
    data = groups.get(f"dp{stage}", members) if shape.dp > 1 else None
    world = groups.get("world", range(shape.ranks))
    pipeline = groups.get(f"pp{replica}", range(replica, shape.ranks, shape.dp))
    forward_chunk, backward_chunk = _chunks(shape.pp, shape.chunks)
    total = shape.microbatches * shape.chunks
    last_chunk = shape.chunks - 1

    def neighbour(distance: int) -> int:
        return (stage + distance) % shape.pp * shape.dp + replica

    def plan(name: str, way: str, distance: int) -> PlannedSend:
        other = neighbour(distance)
        ends = [rank.rank, other] if name == "send" else [other, rank.rank]
        return PlannedSend(name, other, groups.get(f"{way}_{ends[0]}_{ends[1]}", ends), _ELEMENTS)

    def sends_forward(number: int) -> bool:
        return not (stage == shape.pp - 1 and forward_chunk(number) == last_chunk)

    def receives_forward(number: int) -> bool:
        return number < total and not (stage == 0 and forward_chunk(number) == 0)

    def sends_backward(number: int) -> bool:
        return not (stage == 0 and backward_chunk(number) == 0)

    def receives_backward(number: int) -> bool:
        return number < total and not (stage == shape.pp - 1 and backward_chunk(number) == last_chunk)

    def exchange(forwards: Sequence[int], backwards: Sequence[int]) -> Waits:
        """(what was computed or -1, what comes next or -1) of each way; in the order in which Megatron-LM has them."""
        (computed, wanted), (sent_back, wanted_back) = forwards, backwards
        sends = []
        if sent_back >= 0 and sends_backward(sent_back):
            sends.append(plan("send", "backward", -1))
        if wanted >= 0 and receives_forward(wanted):
            sends.append(plan("recv", "forward", -1))
        if computed >= 0 and sends_forward(computed):
            sends.append(plan("send", "forward", 1))
        if wanted_back >= 0 and receives_backward(wanted_back):
            sends.append(plan("recv", "backward", 1))
        if not sends:
            return
        behind = [rank.streams[COMPUTE]] if COMPUTE in rank.streams else []
        node = rank.exchange(pipeline, sends, 0.4 * shape.net_us, stream=_PIPELINE, after=behind)
        rank.join(node)
        if shape.synchronizes:
            yield from rank.wait_for(rank.streams[COMPUTE], "cudaDeviceSynchronize")

    def head(factor: float, operator: str) -> None:
        if shape.last_stage > 1:
            work_us = (shape.last_stage - 1) * shape.layers * factor * shape.kernel_us
            rank.kernel(f"sm90_gemm_head_{operator}", work_us, f"aten::{operator}", threads=600)

    def forward(number: int) -> Waits:
        rank.thread = "main"
        if stage == 0 and forward_chunk(number) == 0:
            rank.load(60)
            yield from rank.copy_batch()
        for _ in range(shape.layers):
            attend(rank)
            feed_forward(rank)
        if stage == shape.pp - 1 and forward_chunk(number) == last_chunk:
            head(1.5, "linear")
            if shape.last_stage > 1:
                measure_loss(rank)
        yield from rank.keep_queue()

    def backward(number: int, reduced: list[Work]) -> Waits:
        rank.thread = "autograd"
        if stage == shape.pp - 1 and backward_chunk(number) == last_chunk:
            head(2.1, "mm")
        reduces = number == total - 1 and data is not None
        bucket_us = shape.net_us * shape.layers / shape.buckets
        for layer in reversed(range(shape.layers)):
            feed_backward(rank)
            attend_backward(rank)
            if reduces and data is not None and layer % max(1, shape.layers // shape.buckets) == 0:
                behind = [rank.streams[COMPUTE]]
                reduced.append(
                    rank.collective(data, "allreduce", bucket_us, stream=_BUCKETS, after=behind, elements=13_000_000)
                )
        yield from rank.keep_queue()
        rank.thread = "main"

    def plain(reduced: list[Work]) -> Waits:
        """Each half of a pair of turns has its own batch."""
        ahead = min(shape.pp - 1 - stage, total)
        yield from exchange((-1, 0), (-1, -1))
        for number in range(ahead):
            yield from forward(number)
            yield from exchange((number, -1), (-1, -1))
            if number + 1 < total:
                yield from exchange((-1, number + 1), (-1, -1))
        for number in range(total - ahead):
            yield from forward(ahead + number)
            yield from exchange((ahead + number, -1), (-1, number))
            yield from backward(number, reduced)
            following = ahead + number + 1
            yield from exchange((-1, following if following < total else -1), (number, -1))
        for number in range(total - ahead, total):
            yield from exchange((-1, -1), (-1, number))
            yield from backward(number, reduced)
            yield from exchange((-1, -1), (number, -1))

    def interleaved(reduced: list[Work]) -> Waits:
        """A batch of up to four behind each pair of turns."""
        ahead = min(2 * (shape.pp - 1 - stage) + last_chunk * shape.pp, total)
        yield from exchange((-1, 0), (-1, -1))
        for number in range(ahead):
            yield from forward(number)
            turns_back = number == ahead - 1 and ahead < total
            yield from exchange((number, number + 1), (-1, 0 if turns_back else -1))
        for number in range(total - ahead):
            yield from forward(ahead + number)
            yield from backward(number, reduced)
            yield from exchange((ahead + number, ahead + number + 1), (number, number + 1))
        if ahead == total:
            yield from exchange((-1, -1), (-1, 0))
        for number in range(total - ahead, total):
            yield from backward(number, reduced)
            yield from exchange((-1, -1), (number, number + 1))

    def iteration() -> Waits:
        reduced: list[Work] = []
        yield from (plain if shape.chunks == 1 else interleaved)(reduced)
        if reduced:
            rank.join(reduced[-1])
        rank.kernel("l2norm_kernel", 20, "aten::linalg_vector_norm")
        behind = [rank.streams[COMPUTE]]
        rank.join(rank.collective(world, "allreduce", 12, stream=_WORLD, after=behind, elements=1))
        optimize(rank)

    return iteration


def _chunks(stages: int, chunks: int) -> tuple[Callable[[int], int], Callable[[int], int]]:
    """The part of a stage's model that the n-th forward and backward turn compute."""

    def forward(number: int) -> int:
        return number % (stages * chunks) // stages

    def backward(number: int) -> int:
        return chunks - 1 - forward(number)

    return forward, backward
