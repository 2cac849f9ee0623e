"""Edits of simulated jobs against the same jobs simulated anew: the right time, inside the interval."""

from dataclasses import replace

import pytest
from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_analyzer.whatif.prediction import predict, student_95
from fleetprof_analyzer.whatif.replay.job import read_job
from fleetprof_api.report.prediction import Prediction
from harness.traces.simulated.cases import draw_simulated
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import LoopShape, SimulatedFault

WORST = 0.04
JOB = LoopShape(loop="replicated", dp=4, layers=3, iterations=6, kernel_us=80)
BOUND_BY_HOST = replace(JOB, kernel_us=8, host_us=20)
LITTLE_TO_SEND = replace(BOUND_BY_HOST, net_us=10)
BOUND_BY_NETWORK = LoopShape(loop="sharded", shards=4, layers=4, iterations=6, kernel_us=60, net_us=500)
WAITS_FOR_DATA = replace(JOB, kernel_us=20, load=15)
EDITED: list[tuple[LoopShape, str, LoopShape]] = [
    (JOB, "faster:sm90_gemm=2x", replace(JOB, faster={"sm90_gemm": 2})),
    (JOB, "faster:sm90_gemm=0.5x", replace(JOB, faster={"sm90_gemm": 0.5})),
    (BOUND_BY_HOST, "faster:sm90_gemm=2x", replace(BOUND_BY_HOST, faster={"sm90_gemm": 2})),
    (BOUND_BY_NETWORK, "network=2x", replace(BOUND_BY_NETWORK, net_us=250)),
    (BOUND_BY_NETWORK, "network=0.5x", replace(BOUND_BY_NETWORK, net_us=1000)),
    (JOB, "network=4x", replace(JOB, net_us=JOB.net_us / 4)),
    (LITTLE_TO_SEND, "graph=all", replace(LITTLE_TO_SEND, graphs=True)),
    (WAITS_FOR_DATA, "loader=0", replace(WAITS_FOR_DATA, load=0)),
    (WAITS_FOR_DATA, "loader=2x", replace(WAITS_FOR_DATA, load=7.5)),
]
MENDED = [("ddp", "slow_gpu", 1), ("ddp", "throttling", 1), ("fsdp", "data_loader", 1), ("fsdp", "gc", 1),
          ("hsdp", "slow_gpu", 1), ("launch", "slow_host", 1), ("pipeline", "slow_gpu", 1),
          ("sparse", "slow_gpu", 1), ("lengths", "slow_gpu", 1), ("lengths_fsdp", "throttling", 1)]  # fmt: skip


def answer_of(job: EventJob, *texts: str) -> Prediction:
    return predict(read_job(list(enumerate(job.traces()))), list(texts), read_edits(texts))


@pytest.mark.parametrize(("shape", "text", "changed"), EDITED)
def test_an_edit_takes_what_the_changed_job_takes(shape: LoopShape, text: str, changed: LoopShape) -> None:
    answer = answer_of(EventJob(shape, SimulatedFault(), 7), text)
    truth_ns = 1000 * EventJob(changed, SimulatedFault(), 7, profiled=False).iteration_us
    assert answer.iteration_ns is not None
    assert answer.iteration_ns.value == pytest.approx(truth_ns, rel=WORST)
    assert answer.iteration_ns.low <= truth_ns <= answer.iteration_ns.high


def test_no_interval_reaches_below_nothing() -> None:
    answer = answer_of(EventJob(JOB, SimulatedFault(), 7), "faster:sm90_gemm=0.001x")
    assert answer.iteration_ns is not None
    assert answer.iteration_ns.low >= 0


@pytest.mark.parametrize(("layout", "kind", "seed"), MENDED)
def test_without_its_straggler_a_job_takes_what_the_healthy_one_does(layout: str, kind: str, seed: int) -> None:
    case = draw_simulated(layout, kind, seed)
    answer = answer_of(case.job, f"without-straggler={case.job.fault.rank}")
    truth_ns = 1000 * case.job.iteration_us * (1 - case.gain)
    assert answer.iteration_ns is not None
    assert answer.iteration_ns.value == pytest.approx(truth_ns, rel=WORST)


def test_intervals_hold_the_next_captures() -> None:
    inside = []
    for shape, text, changed in (EDITED[0], EDITED[3], EDITED[7]):
        interval = answer_of(EventJob(shape, SimulatedFault(), 7), text).iteration_ns
        assert interval is not None
        for run in range(1, 4):
            next_ns = 1000 * EventJob(changed, SimulatedFault(), 7, profiled=False, run=run).iteration_us
            inside.append(interval.low <= next_ns <= interval.high)
    assert sum(inside) >= len(inside) - 1


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(0, 1.96), (1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)]
)
def test_few_iterations_tell_little_of_how_much_they_vary(freedom: int, quantile: float) -> None:
    assert student_95(freedom) == pytest.approx(quantile, rel=0.02)


def test_a_mended_rank_may_be_slower_than_its_peers_by_itself() -> None:
    found = [
        answer_of(EventJob(shape, SimulatedFault("slow_gpu", 1, 1.5), 7), "without-straggler=1").iteration_ns
        for shape in (replace(JOB, rank_spread=0.05), replace(JOB, rank_spread=0.001))
    ]
    uneven, even = ((one.high - one.value) / (one.value - one.low) for one in found if one is not None)
    assert uneven > even


def test_several_edits_at_once_are_one_answer() -> None:
    job = EventJob(BOUND_BY_NETWORK, SimulatedFault(), 7)
    changed = replace(BOUND_BY_NETWORK, net_us=250, faster={"sm90_gemm": 2})
    truth_ns = 1000 * EventJob(changed, SimulatedFault(), 7, profiled=False).iteration_us
    answer = answer_of(job, "network=2x", "faster:sm90_gemm=2x")
    assert answer.iteration_ns is not None
    assert answer.iteration_ns.value == pytest.approx(truth_ns, rel=WORST)


@pytest.mark.parametrize(
    ("several", "one"),
    [
        (("faster:aten::=2x", "faster:aten::=2x"), ("faster:aten::=4x",)),
        (("faster:aten::=2x", "faster:aten::mm=2x"), ("faster:aten::mm=2x", "faster:aten::=2x")),
        (("loader=2x", "loader=2x"), ("loader=4x",)),
        (("faster:aten::=0", "faster:aten::mm=2x"), ("faster:aten::=0",)),
        (("loader=0", "graph=all"), ("graph=all", "loader=0")),
    ],
)
def test_edits_of_the_same_work_take_what_is_left(several: tuple[str, ...], one: tuple[str, ...]) -> None:
    job = EventJob(replace(BOUND_BY_HOST, load=15), SimulatedFault(), 7)
    found = [answer_of(job, *texts).iteration_ns for texts in (several, one)]
    values = [answer.value for answer in found if answer is not None]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_what_bounds_the_job_follows_the_edit() -> None:
    job = EventJob(BOUND_BY_NETWORK, SimulatedFault(), 7)
    now, then = answer_of(job), answer_of(job, "network=8x")
    assert max(now.bound_by, key=lambda kind: now.bound_by[kind]) == "communication"
    assert max(then.bound_by, key=lambda kind: then.bound_by[kind]) == "compute"


def test_one_module_of_a_graph_saves_a_part_of_what_all_do() -> None:
    job = EventJob(BOUND_BY_HOST, SimulatedFault(), 7)
    backward, every = (answer_of(job, f"graph={name}").change for name in ("AddmmBackward0", "all"))
    assert backward is not None
    assert every is not None
    assert every < backward < 0


REFUSED = [
    ("faster:no_such_name=2x", "no_such_name"),
    ("graph=no_such_module", "no_such_module"),
    ("without-straggler=9", "rank 9 is not in this capture"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_the_capture_does_not_tell_is_refused_with_the_reason(text: str, reason: str) -> None:
    answer = answer_of(EventJob(JOB, SimulatedFault(), 7), text)
    assert answer.iteration_ns is None
    assert reason in answer.refused


def test_without_the_calls_that_launch_nothing_is_predicted() -> None:
    answer = answer_of(EventJob(replace(JOB, launches=False), SimulatedFault(), 7), "network=2x")
    assert answer.iteration_ns is None
    assert "has a call that launched it" in answer.refused


def test_a_network_is_not_told_by_one_rank() -> None:
    traces = list(enumerate(EventJob(JOB, SimulatedFault(), 7).traces()))[:1]
    answer = predict(read_job(traces), ["network=2x"], read_edits(["network=2x"]))
    assert "two ranks or more" in answer.refused


def test_a_stage_with_one_rank_has_no_peer() -> None:
    shape = LoopShape(loop="staged", pp=3, layers=1, iterations=4, last_stage=2.0)
    answer = answer_of(EventJob(shape, SimulatedFault(), 7), "without-straggler=2")
    assert "no captured rank does the work of rank 2" in answer.refused
