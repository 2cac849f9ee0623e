"""Another batch size from one capture: operators whose shapes carry the batch grow, others do not."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_analyzer.whatif.replay.job import read_job
from fleetprof_api.report.prediction import Prediction
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import DynamicShapes, LoopShape, SimulatedFault

WORST = 0.1
SAMPLES = 4096.0  # tokens of the simulation's usual batch
SHAPED = DynamicShapes(spread=0, says_inputs=True)
DDP = LoopShape(loop="replicated", dp=4, layers=3, iterations=5, kernel_us=80, dynamic=SHAPED)
FSDP = LoopShape(loop="sharded", shards=4, layers=3, iterations=5, kernel_us=80, net_us=300, dynamic=SHAPED)
BOUND_BY_HOST = replace(DDP, kernel_us=12, host_us=12)


def answer_of(shape: LoopShape, samples: float | None, *texts: str) -> Prediction:
    job = read_job(list(enumerate(EventJob(shape, SimulatedFault(), 7).traces())))
    return predict(replace(job, samples=samples), list(texts), read_edits(texts))


def of_tokens(shape: LoopShape, tokens: float) -> LoopShape:
    assert shape.dynamic is not None
    return replace(shape, dynamic=replace(shape.dynamic, tokens=tokens))


@pytest.mark.parametrize("samples", [SAMPLES, 4 * SAMPLES])  # of a rank, or of all
@pytest.mark.parametrize(("shape", "tokens"), [(DDP, 2.0), (DDP, 0.5), (FSDP, 2.0), (FSDP, 1.5), (BOUND_BY_HOST, 2.0)])
def test_a_batch_takes_what_the_job_with_that_batch_takes(shape: LoopShape, tokens: float, samples: float) -> None:
    answer = answer_of(shape, samples, f"batch_size={samples * tokens:.0f}")
    truth_ns = 1000 * EventJob(of_tokens(shape, tokens), SimulatedFault(), 7, profiled=False).iteration_us
    assert answer.iteration_ns is not None, answer.refused
    assert answer.iteration_ns.value == pytest.approx(truth_ns, rel=WORST)
    assert answer.iteration_ns.low <= truth_ns <= answer.iteration_ns.high


def test_throughput_counts_the_samples() -> None:
    answer = answer_of(DDP, SAMPLES, "batch_size=8192")
    assert answer.change is not None
    assert answer.throughput_change == pytest.approx(2 / (1 + answer.change) - 1)


REFUSED: list[tuple[LoopShape, float | None, Sequence[str], str]] = [
    (DDP, None, ["batch_size=8192"], "say it as CAPTURE@8"),
    (DDP, SAMPLES, ["batch_size=20000"], "half to twice"),
    (DDP, 4097, ["batch_size=8192"], "no operator's shapes hold a batch of 4097"),
    (replace(DDP, dynamic=None), SAMPLES, ["batch_size=8192"], "capture with Shapes"),
    (DDP, SAMPLES, ["batch_size=8192", "ranks=8"], "not told at once"),
]


@pytest.mark.parametrize(("shape", "samples", "texts", "reason"), REFUSED)
def test_what_one_capture_does_not_tell(
    shape: LoopShape, samples: float | None, texts: Sequence[str], reason: str
) -> None:
    answer = answer_of(shape, samples, *texts)
    assert answer.iteration_ns is None
    assert reason in answer.refused
