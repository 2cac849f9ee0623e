"""Loops that work ahead: the next batch between forward and backward, a forward pass within a backward one.

Times in µs, one iteration from 0 to 10,000.
"""

from typing import Any

import pytest
from harness.traces.planted.loop import AUTOGRAD, MAIN, iteration, measure, read, row, times

GLOO = 3
Events = list[dict[str, Any]]
ENGINE = "autograd::engine::evaluate_function: "


def mark(name: str, start: int, end: int, thread: int = MAIN) -> dict[str, Any]:
    return row(name, start, end, thread=thread, category="user_annotation")


def function(start: int, end: int, number: int, thread: int = MAIN, name: str = "AddmmBackward0") -> dict[str, Any]:
    return row(f"{ENGINE}{name}", start, end, thread=thread, sequence=number)


STEP = [mark("Optimizer.step#SGD.step", 9_000, 10_000), row("aten::add_", 9_100, 9_900)]


def loop(*parts: Events) -> dict[str, int]:
    return times(measure(read([mark("ProfilerStep#1", 0, 10_000), *(event for part in parts for event in part)])))


LAYERS = [row("aten::linear", 0, 2_000, sequence=1), row("aten::mse_loss", 2_010, 2_500, sequence=2)]
BACK = [row("aten::sum", 6_000, 6_010, sequence=3), function(6_020, 6_100, 3, name="SumBackward0"),
        function(6_100, 6_200, 2, name="MseLossBackward0"), function(6_200, 9_000, 1)]  # fmt: skip


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(
    "exchange",
    [
        [row("c10d::alltoall_base_", 4_000, 4_100), mark("nccl:all_to_all", 4_010, 4_090)],
        # gloo's own threads carry it out, so only the operator tells.
        [row("c10d::alltoall_base_", 4_000, 4_100), mark("gloo:all_to_all", 4_200, 5_000, GLOO)],
        [row("_c10d_functional::all_to_all_single", 4_000, 4_100)],
    ],
)
def test_all_that_prepares_the_next_batch_is_other_around_its_exchange(exchange: Events, marked: bool) -> None:
    model = [mark("DistributedDataParallel.forward", 0, 2_500)] if marked else []
    fetched = [row("aten::view", 2_520, 2_600), row("fbgemm::permute_2D_sparse_data", 2_610, 4_000), *exchange,
               row("aten::to", 4_100, 5_990)]  # fmt: skip
    found = loop(LAYERS, model, fetched, BACK, STEP)
    assert found["forward"] + found.get("loss", 0) == pytest.approx(2_500, abs=50)
    assert found["other"] == pytest.approx(3_480, abs=50)
    assert found["backward"] == pytest.approx(3_000, abs=50)


def test_what_all_ranks_exchange_before_the_model_is_no_part_of_forward_but_buffers_sent_around_are() -> None:
    for gathered, forward in (("c10d::alltoall_base_", 2_000), ("c10d::broadcast_", 2_910)):
        before = [row(gathered, 90, 900)]
        layers = [row("aten::linear", 1_000, 3_000, sequence=1)]
        found = loop(before, layers, [function(3_010, 9_000, 1)], STEP)
        assert found["forward"] == pytest.approx(forward, abs=120)


# A pass of 3,000 to 9,000, in which the next part of the batch goes forward from 5,000 to 7,000.
FIRST, SECOND = row("aten::linear", 0, 3_000, sequence=1), row("aten::linear", 5_000, 7_000, sequence=2)


@pytest.mark.parametrize(
    "backward",
    [
        # Autograd's own thread goes on beside it.
        [function(3_000, 9_000, 1, AUTOGRAD), function(9_020, 9_040, 2, AUTOGRAD)],
        [*(function(at, at + 90, 1, AUTOGRAD) for at in range(3_000, 9_000, 100)), function(9_020, 9_040, 2, AUTOGRAD)],
        # A function of autograd calls it.
        [function(3_000, 9_000, 1), function(9_020, 9_040, 2)],
        [mark("Backward 1", 3_000, 9_000), function(3_010, 8_900, 1), function(9_020, 9_040, 2)],
    ],
)
def test_a_forward_pass_within_a_backward_pass_is_forward(backward: Events) -> None:
    found = loop([FIRST, SECOND], backward, [mark("Optimizer.step#SGD.step", 9_050, 10_000)])
    assert found["forward"] == pytest.approx(5_000, abs=100)
    assert found["backward"] == pytest.approx(4_050, abs=150)


@pytest.mark.parametrize("used", [[function(7_100, 7_900, 2)], []])
def test_what_is_computed_again_for_a_backward_pass_is_backward(used: Events) -> None:
    """Checkpointing: what it makes is used up in that pass, or not at all."""
    found = loop([FIRST, SECOND, function(3_000, 9_000, 1), *used], STEP)
    assert (found["forward"], found["backward"]) == (3_000, 6_000)


SUMMED = [row("c10d::allreduce_", 5_500, 5_550), row("aten::div_", 8_000, 8_050),
          mark("gloo:all_reduce", 5_540, 7_990, GLOO)]  # fmt: skip


@pytest.mark.parametrize("step", [True, False])
def test_gradients_summed_up_behind_the_pass_are_backward_with_and_without_a_marked_step(step: bool) -> None:
    update = [row("aten::add_", 9_000, 9_900), *([mark("Optimizer.step#SGD.step", 9_000, 10_000)] if step else [])]
    found = loop([FIRST, function(3_000, 5_500, 1)], SUMMED, update)
    assert found["backward"] == pytest.approx(4_990, abs=100)


@pytest.mark.parametrize("name", ["aten::zero_", "aten::_foreach_zero_"])
def test_gradients_set_to_zero_one_after_the_other_need_no_mark(name: str) -> None:
    zeroes = [row(name, at, at + 90) for at in range(0, 1_000, 100)]
    layers = [row("aten::linear", 1_000, 3_000, sequence=1)]
    found = loop(zeroes, layers, [function(3_000, 9_000, 1)], STEP)
    assert found["zero_grad"] == 990


def test_one_buffer_set_to_zero_is_no_gradient() -> None:
    found = loop([row("aten::zero_", 0, 90), FIRST | {"ts": 100, "dur": 2_900}], [function(3_000, 9_000, 1)], STEP)
    assert "zero_grad" not in found


# ---------------------------------------------------------------- pipelines: parts of a batch, from stage to stage

MSE = "MseLossBackward0"


def part(at: int, number: int) -> Events:
    """1,000 of forward: a layer of 700 and its loss."""
    return [row("aten::linear", at, at + 700, sequence=number), row("aten::mse_loss", at + 710, at + 1_000,
                                                                    sequence=number + 1)]  # fmt: skip


@pytest.mark.parametrize("received", [[], [row("c10d::recv_", at, at + 300) for at in (1_010, 2_510, 4_010)]])
def test_parts_of_a_batch_go_forward_one_after_the_other(received: Events) -> None:
    """The loss of the first part is no end of the forward pass, and what the next one receives is no next batch."""
    parts = [event for number in range(4) for event in part(1_500 * number, 10 * number + 1)]
    backward = [
        function(6_000 + 700 * at + behind, 6_350 + 700 * at + behind, 10 * number + 2 - behind // 350, name=name)
        for at, number in enumerate((0, 1, 2, 3))
        for behind, name in ((0, MSE), (350, "AddmmBackward0"))
    ]
    found = loop(parts, received, backward, STEP)
    assert "other" not in found
    assert found["forward"] + found["loss"] >= (5_490 if received else 3_990)
    assert found["backward"] == pytest.approx(2_800, abs=20)


@pytest.mark.parametrize(
    ("waits", "stage", "time"),
    [
        # The receive is waited for in its operator, or in silence: it is for what follows.
        ([row("c10d::recv_", 10, 3_000)], "forward", 4_000),
        ([row("c10d::recv_", 10, 20), mark("gloo:recv", 15, 2_950, GLOO)], "forward", 3_990),
        (
            [row("c10d::recv_", 10, 20), row("aten::empty", 30, 40), mark("gloo:recv", 15, 2_950, GLOO)],
            "forward",
            3_960,
        ),
        # It was there long before.
        ([row("c10d::recv_", 10, 20), row("aten::empty", 30, 40), mark("gloo:recv", 15, 900, GLOO)], "host", 2_960),
        # Of any other operator nothing says what it is for.
        ([row("aten::sort", 10, 2_000)], "other", 1_990),
    ],
)
def test_what_a_stage_receives_is_for_what_it_does_next(waits: Events, stage: str, time: int) -> None:
    layers = [row("aten::linear", 3_000, 4_000, sequence=1)]
    found = loop(waits, layers, [function(4_010, 9_000, 1)], STEP)
    assert found[stage] == pytest.approx(time, abs=60)


def test_a_receive_that_goes_on_behind_a_backward_pass_is_no_part_of_it() -> None:
    received = [row("c10d::recv_", 3_010, 3_020), mark("gloo:recv", 3_015, 6_900, GLOO)]
    found = loop([FIRST], received, [function(3_030, 5_000, 1), row("aten::linear", 7_000, 8_000, sequence=2),
                                     function(8_010, 9_000, 2)], STEP)  # fmt: skip
    assert found["forward"] == pytest.approx(6_000, abs=60)


@pytest.mark.parametrize(
    "more",
    [
        [],
        # Parameters that are gathered for a layer (FSDP), and those that each rank has updated a part of (ZeRO).
        [("aten::_foreach_copy_", 160, 170)],
        [("c10d::_allgather_base_", 955, 1_040), ("aten::_foreach_copy_", 160, 170)],
        [("c10d::broadcast_", 955, 1_000), ("c10d::broadcast_", 1_001, 1_040)],
    ],
)
def test_parameters_that_are_put_together_end_no_iteration_that_nothing_marks(more: list[tuple[str, int, int]]) -> None:
    events = [event for n in (1, 2, 3) for event in iteration(1_000 * n, n, marks=False, loader=False)]
    events += [row(name, 1_000 * n + start, 1_000 * n + end) for n in (1, 2, 3) for name, start, end in more]
    found = measure(read(events))
    assert found.iterations == 3
    of_step = sum(end - start for name, start, end in more if name.startswith("c10d"))
    assert times(found)["optimizer"] == pytest.approx(360 + 2 * of_step, abs=110)
    assert times(found)["forward"] == pytest.approx(900, abs=160)
