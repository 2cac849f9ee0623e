"""Other numbers of ranks: simulated jobs at both sizes, and what no capture tells."""

from dataclasses import replace

import pytest
from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_analyzer.whatif.replay.job import read_job
from fleetprof_api.report.prediction import Prediction
from harness.traces.simulated.cases import draw_simulated
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import LoopShape, SimulatedFault

WORST = 0.04
DDP = LoopShape(loop="replicated", dp=4, layers=3, iterations=5, kernel_us=40, net_us=300, algorithm="ring", per_node=1)
FSDP = LoopShape(loop="sharded", shards=4, layers=3, iterations=5, kernel_us=60, net_us=200, algorithm="ring",
                 per_node=1)  # fmt: skip
HSDP = replace(FSDP, shards=2, dp=2)
TENSOR = replace(DDP, dp=2, tp=2, net_us=60, algorithm="tree")
STAGES = LoopShape(loop="staged", pp=2, dp=2, layers=1, iterations=4, algorithm="tree", per_node=1)
GROWN: list[tuple[LoopShape, LoopShape]] = [
    (DDP, replace(DDP, dp=12)),
    (DDP, replace(DDP, dp=2)),
    (FSDP, replace(FSDP, shards=8, optimizer=0.5)),
    (HSDP, replace(HSDP, dp=4)),
    (TENSOR, replace(TENSOR, dp=6)),
    (STAGES, replace(STAGES, dp=4)),
]


def answer_of(shape: LoopShape, *texts: str, ranks: int | None = None) -> Prediction:
    traces = EventJob(shape, SimulatedFault(), 7).traces()[:ranks]
    return predict(read_job(list(enumerate(traces))), list(texts), read_edits(texts))


@pytest.mark.parametrize(("shape", "changed"), GROWN)
def test_another_number_of_ranks_takes_what_that_job_takes(shape: LoopShape, changed: LoopShape) -> None:
    answer = answer_of(shape, f"ranks={changed.ranks}")
    truth_ns = 1000 * EventJob(changed, SimulatedFault(), 7, profiled=False).iteration_us
    assert answer.iteration_ns is not None, answer.refused
    assert answer.iteration_ns.value == pytest.approx(truth_ns, rel=WORST)
    assert answer.iteration_ns.low <= truth_ns <= answer.iteration_ns.high


def test_each_rank_keeps_its_batch() -> None:
    answer = answer_of(DDP, "ranks=8")
    assert answer.change is not None
    assert answer.throughput_change is not None
    assert 1 + answer.throughput_change == pytest.approx(2 / (1 + answer.change))


def test_ranks_and_a_faster_network_are_one_answer() -> None:
    changed = replace(DDP, dp=8, net_us=DDP.net_us / 2)
    answer = answer_of(DDP, "ranks=8", "network=2x")
    truth_ns = 1000 * EventJob(changed, SimulatedFault(), 7, profiled=False).iteration_us
    assert answer.iteration_ns is not None
    assert answer.iteration_ns.low <= truth_ns <= answer.iteration_ns.high


REFUSED: list[tuple[LoopShape, list[str], int | None, str]] = [
    (replace(DDP, per_node=8), ["ranks=8"], None, "nothing tells the network between them"),
    (replace(DDP, per_node=8), ["ranks=8", "nodes=2"], None, "nothing tells the network between them"),
    (DDP, ["nodes=2"], None, "nodes goes with ranks"),
    (replace(DDP, per_node=1), ["ranks=8", "nodes=9"], None, "8 ranks are on 8 nodes at most"),
    (DDP, ["ranks=8"], 3, "3 of the job's 4 ranks were captured"),
    (DDP, ["ranks=128"], None, "far from 4"),
    (TENSOR, ["ranks=5"], None, "a replica is 2 ranks"),
    (TENSOR, ["ranks=2"], None, "one replica alone"),
    (replace(TENSOR, dp=1), ["ranks=4"], None, "no group of ranks reduces gradients"),
]


@pytest.mark.parametrize(("shape", "texts", "ranks", "reason"), REFUSED)
def test_what_no_capture_tells_is_refused(shape: LoopShape, texts: list[str], ranks: int | None, reason: str) -> None:
    answer = answer_of(shape, *texts, ranks=ranks)
    assert answer.iteration_ns is None
    assert reason in answer.refused


def test_more_ranks_of_one_node_are_told() -> None:
    assert answer_of(replace(DDP, per_node=8), "ranks=8", "nodes=1").iteration_ns is not None


def test_experts_are_not_laid_out_anew() -> None:
    job = draw_simulated("experts", "none", 2).job
    answer = predict(read_job(list(enumerate(job.traces()))), ["ranks=16"], read_edits(["ranks=16"]))
    assert "exchange tokens" in answer.refused


def test_more_nodes_make_the_interval_wider() -> None:
    few, many = (answer_of(replace(DDP, per_node=2, net_us=800), "ranks=8", f"nodes={count}") for count in (2, 8))
    assert few.iteration_ns is not None
    assert many.iteration_ns is not None
    assert many.iteration_ns.high - many.iteration_ns.low > few.iteration_ns.high - few.iteration_ns.low
