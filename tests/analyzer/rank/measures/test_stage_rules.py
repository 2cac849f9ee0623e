"""The begin and end of a stage, in loops with waits, closures and work of the host in them. Times in µs."""

from typing import Any

import pytest
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import Silence, Stages, StageTime
from harness.reports.page_text import page_text
from harness.traces.planted.loop import MAIN, measure, read, row, times

GLOO = 3
DIVIDED = row("autograd::engine::evaluate_function: DivBackward0", 960, 990, sequence=3)
Events = list[dict[str, Any]]
MARK = "user_annotation"


def mark(name: str, start: int, end: int, thread: int = MAIN) -> dict[str, Any]:
    return row(name, start, end, thread=thread, category=MARK)


def forward(at: int, number: int, *, model: bool = False) -> Events:
    """400 of forward."""
    rows = [row("aten::linear", at, at + 400, sequence=number)]
    return [*rows, mark("DistributedDataParallel.forward", at, at + 400)] if model else rows


def backward(at: int, number: int) -> Events:
    """500 of backward: the seed and autograd on the thread itself, as on a CPU."""
    return [
        row("aten::ones_like", at, at + 50),
        row("autograd::engine::evaluate_function: AddmmBackward0", at + 100, at + 450, sequence=number),
        row("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + 450, at + 500),
    ]


def step(start: int, end: int, updates: int | None = None) -> Events:
    """An optimizer's step that updates parameters from `updates` on."""
    first = end - 50 if updates is None else updates
    return [mark("Optimizer.step#SGD.step", start, end), row("aten::add_", first, end - 10)]


def loop(*parts: Events) -> dict[str, int]:
    """The stages of one iteration, from 0 to 10,000."""
    events = [event for part in parts for event in part]
    return times(measure(read([mark("ProfilerStep#1", 0, 10_000), *events])))


# Forward 0-400, backward from 400, the optimizer 9,000-10,000.
@pytest.mark.parametrize(
    ("behind", "stages"),
    [
        # The main thread waits without a word; the collective begins when its own thread takes it up.
        ([mark("gloo:all_reduce", 930, 8_950, GLOO)],
         {"forward": 400, "backward": 8_600, "optimizer": 1_000}),
        ([mark("gloo:all_reduce", 930, 5_000, GLOO), row("aten::as_strided", 5_010, 5_020),
          row("torch.distributed.ddp.reducer::copy_bucket_to_grad", 5_020, 8_900)],
         {"forward": 400, "backward": 8_600, "optimizer": 1_000}),
        ([mark("gloo:all_reduce", 930, 3_000, GLOO), mark("gloo:all_reduce", 3_100, 8_900, GLOO)],
         {"forward": 400, "backward": 8_600, "optimizer": 1_000}),
        ([mark("FSDP::root_post_backward_callback", 950, 8_900)],
         {"forward": 400, "backward": 8_600, "optimizer": 1_000}),
        # Its thread writes the end down late: the main thread has gone on long ago.
        ([mark("gloo:all_reduce", 930, 9_900, GLOO), row("aten::as_strided", 1_010, 1_020),
          row("torch.distributed.ddp.reducer::copy_bucket_to_grad", 1_020, 1_100)],
         {"forward": 400, "backward": 700, "host": 7_900, "optimizer": 1_000}),
        # Nothing is waited for: work of the host between backward and optimizer.
        ([mark("gloo:all_reduce", 850, 890, GLOO)],
         {"forward": 400, "backward": 500, "host": 8_100, "optimizer": 1_000}),
        # Gradients are clipped: a part of the optimizer, but not the silence before it.
        ([row("aten::_foreach_norm", 8_000, 8_950)],
         {"forward": 400, "backward": 500, "host": 7_100, "optimizer": 2_000}),
    ],
)  # fmt: skip
def test_backward_ends_with_what_the_main_thread_waits_for_in_it(behind: Events, stages: dict[str, int]) -> None:
    assert loop(forward(0, 1), backward(400, 1), behind, step(9_000, 10_000)) == stages


@pytest.mark.parametrize(
    ("parts", "stages"),
    [
        # Lightning: everything but the loader lies in Optimizer.step.
        ([[mark("enumerate(DataLoader)#x", 0, 1_000)], forward(1_100, 1, model=True),
          [mark("Optimizer.zero_grad#SGD.zero_grad", 1_500, 1_600)], backward(1_600, 1),
          [mark("gloo:all_reduce", 2_120, 8_990, GLOO)], step(1_050, 10_000, 9_050)],
         {"data_loading": 1_000, "forward": 500, "zero_grad": 100, "backward": 7_450, "optimizer": 950}),
        # A closure that does work of its own before the model, and the step's own Python before that.
        ([forward(3_000, 1), backward(3_400, 1), step(0, 10_000, 3_950)],
         {"host": 2_800, "forward": 400, "backward": 550, "optimizer": 200 + 6_050}),
        # The loop is silent before the step as well.
        ([forward(3_000, 1), backward(3_400, 1), step(1_000, 10_000, 3_950)],
         {"host": 1_000 + 1_800, "forward": 400, "backward": 550, "optimizer": 200 + 6_050}),
        # No silence: PyTorch's own Python before the first operator is the forward pass's, as without a closure.
        ([[mark("enumerate(DataLoader)#x", 0, 2_850)], forward(3_000, 1), backward(3_400, 1),
          step(2_900, 10_000, 3_950)],
         {"data_loading": 2_850, "forward": 550, "backward": 550, "optimizer": 6_050}),
        # A wrapper's step around the optimizer's: they begin together.
        ([forward(3_000, 1), backward(3_400, 1), step(1_000, 10_000, 3_950), step(1_010, 9_990, 3_950)],
         {"host": 2_800, "forward": 400, "backward": 550, "optimizer": 200 + 6_050}),
        # A hook behind the backward pass, in Python or with operators (gradients are clipped).
        ([forward(0, 1), backward(400, 1), step(0, 10_000, 6_000)],
         {"forward": 400, "backward": 500, "host": 5_100, "optimizer": 4_000}),
        ([forward(0, 1), backward(400, 1), [row("aten::_foreach_norm", 5_000, 5_900)], step(0, 10_000, 6_000)],
         {"forward": 400, "backward": 500, "host": 4_100, "optimizer": 5_000}),
        # LBFGS: the closure is called more than once in a step.
        ([forward(0, 1), backward(400, 1), forward(5_000, 2), backward(5_400, 2), step(0, 10_000, 5_950)],
         {"forward": 800, "backward": 1_050, "optimizer": 8_150}),
        # Two optimizers, one with a closure.
        ([forward(0, 1), backward(400, 1), step(0, 4_000, 950), step(4_000, 10_000)],
         {"forward": 400, "backward": 550, "optimizer": 9_050}),
    ],
)  # fmt: skip
def test_what_a_closure_does_in_the_optimizers_step_has_its_own_stage(
    parts: list[Events], stages: dict[str, int]
) -> None:
    assert loop(*parts) == stages


@pytest.mark.parametrize(
    ("rows", "stages"),
    [
        # Metrics and logs behind the model's operators: the iteration ends in silence.
        ([row("aten::linear", 10_000, 10_400)], {"forward": 400, "host": 9_600}),
        ([row("aten::randn", 10_010, 10_110), row("aten::linear", 10_120, 10_400)], {"forward": 400, "host": 9_600}),
        ([row("aten::linear", 12_000, 20_000)], {"host": 2_000, "forward": 8_000}),
        # Metrics of their own, apart from the model.
        ([row("aten::linear", 10_000, 10_400), row("aten::argmax", 15_000, 15_400)],
         {"other": 400, "forward": 400, "host": 9_200}),
        ([mark("DistributedDataParallel.forward", 10_000, 10_400), row("aten::linear", 10_000, 10_400)],
         {"forward": 400, "host": 9_600}),
        # A model that runs no operator (it is called in another process), and one behind all operators.
        ([mark("DistributedDataParallel.forward", 10_000, 10_400)], {"forward": 400, "host": 9_600}),
        ([row("aten::zeros", 10_000, 10_100), mark("DistributedDataParallel.forward", 12_000, 13_000)],
         {"forward": 1_100, "host": 8_900}),
        ([], {"host": 10_000}),
    ],
)  # fmt: skip
def test_an_iteration_without_autograd_beside_those_that_train(rows: Events, stages: dict[str, int]) -> None:
    trained = [mark("ProfilerStep#1", 0, 10_000), *forward(0, 1), *backward(400, 1), *step(9_000, 10_000)]
    found = measure(read([*trained, mark("ProfilerStep#2", 10_000, 20_000), *rows]))
    assert {stage.stage: stage.iterations_ns[1] // 1_000 for stage in found.stages if stage.iterations_ns[1]} == stages


@pytest.mark.parametrize(
    ("rows", "stages"),
    [
        # The model is given the labels and computes its loss; what it does behind that is forward again.
        ([mark("DistributedDataParallel.forward", 0, 900), row("aten::linear", 0, 500, sequence=1),
          row("aten::cross_entropy_loss", 500, 600, sequence=2),
          row("torch.distributed.ddp.reducer::search_unused_parameters", 650, 850)],
         {"forward": 800, "loss": 100}),
        # Behind the model's range, too: the loss is divided by the number of passes that are summed up.
        ([mark("DistributedDataParallel.forward", 0, 800), row("aten::linear", 0, 500, sequence=1),
          row("aten::cross_entropy_loss", 500, 600, sequence=2), row("aten::div", 800, 900)],
         {"forward": 700, "loss": 200}),
        # FSDP2 marks where the forward pass of each block begins, and no end of it.
        ([mark("FSDP::pre_forward", 0, 110), mark("FSDP::pre_forward (blocks.0)", 110, 120),
          row("aten::addmm", 130, 700, sequence=1), row("aten::relu", 700, 800),
          row("aten::cross_entropy_loss", 800, 900, sequence=2)],
         {"forward": 800, "loss": 100}),
        # Without any mark a loss by name begins the stage; metrics are none, and short ones belong to what follows.
        ([row("aten::linear", 0, 700, sequence=1),
          row("aten::cross_entropy_loss", 700, 850, sequence=2), row("aten::argmax", 850, 900)],
         {"forward": 700, "loss": 150, "backward": 550}),
        ([row("aten::linear", 0, 300, sequence=1),
          row("aten::cross_entropy_loss", 300, 400, sequence=2), row("aten::argmax", 400, 900)],
         {"forward": 300, "loss": 100, "other": 500}),
        # The loss is logged before it is divided; what is computed all the time in between belongs to it (a mask).
        ([row("aten::linear", 0, 300, sequence=1), row("aten::cross_entropy_loss", 300, 400, sequence=2),
          row("aten::detach", 450, 455), row("aten::to", 600, 602), row("aten::div", 700, 720, sequence=3), DIVIDED],
         {"forward": 300, "loss": 120, "other": 300, "backward": 680}),
        ([row("aten::linear", 0, 300, sequence=1), row("aten::cross_entropy_loss", 300, 400, sequence=2),
          row("aten::ne", 400, 640), row("aten::div", 700, 720, sequence=3), DIVIDED],
         {"forward": 300, "loss": 420, "backward": 680}),
        # The model ends with what a loss could be, and a loss by name follows.
        ([row("aten::linear", 0, 700, sequence=1), row("aten::log_softmax", 700, 800),
          row("aten::nll_loss_nd", 800, 900, sequence=3)],
         {"forward": 800, "loss": 100}),
    ],
)  # fmt: skip
def test_the_loss_within_the_model_and_behind_it(rows: Events, stages: dict[str, int]) -> None:
    found = loop(rows, backward(900, 1), step(1_400, 10_000))
    assert found == {"backward": 500, "optimizer": 8_600} | stages


COPY = row("aten::copy_", 910, 920)
ALL_REDUCE = row("c10d::allreduce_", 1_000, 1_050)


@pytest.mark.parametrize(
    ("behind", "stages"),
    [
        # DeepSpeed: gradients are summed up by hand behind autograd, copied back, and then measured.
        ([COPY, ALL_REDUCE, mark("gloo:all_reduce", 1_010, 6_000, GLOO), row("aten::copy_", 6_000, 6_500),
          row("aten::linalg_vector_norm", 6_500, 8_950)],
         {"forward": 400, "backward": 6_100, "optimizer": 3_500}),
        # What is summed up behind the first measure is the measure: gradients are clipped.
        ([row("aten::linalg_vector_norm", 910, 1_000), ALL_REDUCE, mark("gloo:all_reduce", 1_010, 8_950, GLOO)],
         {"forward": 400, "backward": 500, "optimizer": 9_100}),
        # Nothing waits for a collective that has ended: the host does something else.
        ([ALL_REDUCE, mark("gloo:all_reduce", 1_010, 1_100, GLOO)],
         {"forward": 400, "backward": 700, "host": 7_900, "optimizer": 1_000}),
    ],
)  # fmt: skip
def test_gradients_summed_up_before_they_are_measured_are_backward(behind: Events, stages: dict[str, int]) -> None:
    assert loop(forward(0, 1), backward(400, 1), behind, step(9_000, 10_000)) == stages


GATHER = [row("c10d::_allgather_base_", 50, 100), mark("gloo:all_gather", 60, 6_000, GLOO)]


@pytest.mark.parametrize(
    ("first", "stages"),
    [
        # ZeRO: each rank has updated a part of the parameters; the others' are put into their places.
        ([row("aten::copy_", 10, 40), *GATHER, row("aten::narrow", 6_000, 6_010)], {"optimizer": 6_010 + 1_100}),
        # A loss is gathered, to be printed: ranks wait for each other, which is no work of the host.
        ([row("aten::mean", 10, 40), *GATHER], {"other": 6_000, "optimizer": 1_100}),
        # Behind the loader it is none of the optimizer's.
        ([mark("enumerate(DataLoader)#x", 0, 45), *GATHER],
         {"data_loading": 45, "other": 5_955, "optimizer": 1_100}),
    ],
)  # fmt: skip
def test_parameters_gathered_right_behind_a_step_are_the_optimizers(first: Events, stages: dict[str, int]) -> None:
    found = loop(first, forward(8_000, 1), backward(8_400, 1), step(8_900, 10_000))
    begun = {"host": 8_000 - sum(stages.values()) + 1_100}
    assert found == {"forward": 400, "backward": 500} | begun | stages


LOADER = mark("enumerate(DataLoader)#x", 4_000, 4_500)
ZERO_GRAD = mark("Optimizer.zero_grad#SGD.zero_grad", 0, 100)
SUM = row("aten::sum", 100, 400)
AFTER = {"backward": 500, "optimizer": 1_100}


@pytest.mark.parametrize(
    ("before", "model", "stages"),
    [
        ([ZERO_GRAD], False, {"zero_grad": 100, "host": 7_900, "forward": 400}),
        # The batch is made right before the model, after the silence: with the model where nothing marks that.
        ([ZERO_GRAD, row("aten::randn", 7_900, 7_950)], False, {"zero_grad": 100, "host": 7_800, "forward": 500}),
        ([SUM], False, {"other": 400, "host": 7_600, "forward": 400}),
        ([LOADER], False, {"data_loading": 500, "host": 4_000 + 3_500, "forward": 400}),
        # Below 1 % of the iteration or 200 µs it belongs to what follows: PyTorch's own Python takes as long.
        ([row("aten::randn", 0, 3_900), mark("enumerate(DataLoader)#x", 3_900, 7_810)], False,
         {"other": 3_900, "data_loading": 3_910, "forward": 590}),
        # Ranks agree on something before the model: no part of it.
        ([row("c10d::allgather_", 50, 7_900), row("aten::sum", 7_900, 7_950)], True,
         {"other": 7_900, "forward": 500}),
    ],
)  # fmt: skip
def test_silence_between_stages_is_the_hosts_and_other_operators_are_no_stage(
    before: Events, model: bool, stages: dict[str, int]
) -> None:
    found = loop(before, forward(8_000, 1, model=model), backward(8_400, 1), step(8_900, 10_000))
    assert found == stages | AFTER


def test_silence_after_the_optimizer_is_the_hosts() -> None:
    found = loop(forward(0, 1), backward(400, 1), step(900, 2_000), [row("aten::item", 9_000, 10_000)])
    assert found == {"forward": 400, "backward": 500, "optimizer": 1_100, "host": 7_000, "other": 1_000}


def test_the_places_of_silence_are_named_the_longest_first() -> None:
    events = [
        event
        for at in (0, 10_000)
        for event in [
            mark(f"ProfilerStep#{at}", at, at + 10_000), mark("Optimizer.zero_grad#SGD.zero_grad", at, at + 100),
            row("aten::randn", at + 5_000, at + 5_100), *forward(at + 5_100, at + 1), *backward(at + 5_500, at + 1),
            *step(at + 8_000, at + 10_000),
        ]
    ]  # fmt: skip
    silences = measure(read(events)).silences
    assert [(one.after, one.before, one.time_ns // 1000, one.count) for one in silences] == [
        ("Optimizer.zero_grad#SGD.zero_grad", "aten::randn", 9_800, 2),
        ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "Optimizer.step#SGD.step", 4_000, 2),
    ]


def test_page_and_terminal_say_what_the_hosts_stage_is() -> None:
    stages = Stages(
        stages=[StageTime(stage="zero_grad", time_ns=1), StageTime(stage="host", time_ns=3)],
        silences=[Silence(after="aten::item", before="aten::randn", time_ns=3, count=1)],
    )
    report = Report(
        ranks=[Rank(rank=0, source="t", kind="cpu", time_basis="host", time_ns=TimeBreakdown(), stages=stages)]
    )
    for shown in (render_text(report, width=160), page_text(report)):
        assert shown.index("zero grad") < shown.index("host, between stages")
        assert "between aten::item and aten::randn" in shown
