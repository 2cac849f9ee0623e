"""The waits of a pipeline's devices by its schedule: what the simulation waited, and what the formula says."""

import numpy as np
import pytest
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.rank import COMPUTE
from harness.traces.simulated.shapes import LoopShape, SimulatedFault
from harness.traces.straggler_sections import stragglers_of_traces

POINT = 0.01
# Loop, stages, microbatches, parts of the model on each stage, ranks of a stage.
PIPELINES = [
    ("staged", 2, 4, 1, 2), ("staged", 4, 8, 1, 2), ("batched", 2, 6, 1, 1), ("batched", 3, 4, 1, 2),
    ("batched", 8, 8, 1, 1), ("batched", 3, 6, 3, 1), ("batched", 4, 8, 2, 2),
]  # fmt: skip


def equal_stages(
    loop: str, stages: int, microbatches: int, chunks: int, replicas: int, iterations: int = 4
) -> LoopShape:
    return LoopShape(
        loop=loop, pp=stages, dp=replicas, microbatches=microbatches, chunks=chunks, layers=2 if chunks == 1 else 1,
        kernel_us=200, host_us=4, net_us=2, last_stage=1.0, iterations=iterations,
        asks_loss=False, synchronizes=False,
    )  # fmt: skip


def waited(job: EventJob) -> float:
    """The time in which devices did nothing, less the transfers: share of the iterations, mean of the ranks."""
    shares = []
    for rank in job.ranks:
        ends = [work.ended for _, work in rank.borders[job.shape.warm :] if work is not None]
        inside = [
            row.node
            for row in rank.rows
            if row.node is not None and ends[0] <= row.node.start < row.node.ended <= ends[-1]
        ]
        worked = sum(
            row.node.ended - row.node.start for row in rank.rows if row.place == COMPUTE and row.node in inside
        )
        transfers = sum(
            max(one.transfer_us for one in node.batch) for node in inside if node is not None and node.batch
        )
        shares.append(1 - (worked + transfers) / (ends[-1] - ends[0]))
    return float(np.mean(shares))


@pytest.mark.parametrize(("loop", "stages", "microbatches", "chunks", "replicas"), PIPELINES)
def test_the_bubbles_are_those_of_the_schedule(
    loop: str, stages: int, microbatches: int, chunks: int, replicas: int
) -> None:
    job = EventJob(equal_stages(loop, stages, microbatches, chunks, replicas), SimulatedFault(), 7)
    found = stragglers_of_traces(job.traces()).pipeline
    assert found is not None
    assert (found.stages, found.microbatches, found.chunks) == (stages, microbatches, chunks)
    assert found.ideal_share == pytest.approx((stages - 1) / (chunks * microbatches + stages - 1))
    assert found.share == pytest.approx(found.ideal_share, abs=POINT)
    assert found.share == pytest.approx(waited(job), abs=POINT)


def test_what_a_late_rank_costs_is_no_bubble() -> None:
    shape = equal_stages("batched", 3, 4, 1, 3, iterations=8)
    healthy, late = (EventJob(shape, fault, 7) for fault in (SimulatedFault(), SimulatedFault("slow_gpu", 4, 1.5)))
    found = [stragglers_of_traces(job.traces()) for job in (healthy, late)]
    assert [one.rank for one in found[1].ranks] == [4]
    shares = [one.pipeline.share for one in found if one.pipeline is not None]
    longer = late.iteration_us / healthy.iteration_us
    assert shares[1] == pytest.approx(shares[0] / longer, abs=POINT)


@pytest.mark.parametrize("shape", [LoopShape("replicated", dp=4), LoopShape("sharded", shards=4)])
def test_a_job_without_stages_has_no_bubbles(shape: LoopShape) -> None:
    assert stragglers_of_traces(EventJob(shape, SimulatedFault(), 7).traces()).pipeline is None
