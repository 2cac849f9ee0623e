"""Gradients that are reduced after each of several backward passes of a step, and what only looks like that."""

from dataclasses import dataclass

import pytest
from fleetprof_api.report.rank_tables import KnownCause
from harness.traces.written_loop import AUTOGRAD, GLOO, WrittenLoop

MS = 1_000_000
EVALUATES = "autograd::engine::evaluate_function: "
BEHIND = f"{EVALUATES}RegisterPostBackwardFunctionBackward"
ACCUMULATES = f"{EVALUATES}torch::autograd::AccumulateGrad"


@dataclass
class Accumulation:
    """`passes` of an iteration, which reduce in buckets: `called_in` is the function of autograd around the calls."""

    passes: int = 4
    reducing: tuple[int, ...] = (0, 1, 2, 3)
    buckets: int = 2
    called_in: str = ACCUMULATES
    operator: str = "c10d::allreduce_"
    functions: tuple[str, ...] = ("AddmmBackward0", "AddmmBackward0", "AddmmBackward0", "AddmmBackward0")
    steps_between: bool = False
    gpu: bool = False

    def loop(self) -> WrittenLoop:
        """Six iterations of 50 ms."""
        loop = WrittenLoop(iterations=0, gpu=self.gpu)
        for number in range(6):
            start = 50 * number
            loop.add(f"ProfilerStep#{number}", start, 50, category="user_annotation")
            for index in range(self.passes):
                at = start + 10 * index
                loop.add("aten::linear", at + 1, 1, number=10 * number + index)
                for layer in range(3):
                    loop.add(
                        f"{EVALUATES}{self.functions[index]}", at + 3 + layer, 0.5, AUTOGRAD, number=10 * number + index
                    )
                if index in self.reducing:
                    for bucket in range(self.buckets):
                        when = at + 6 + bucket / 2
                        loop.add(self.called_in, when, 0.4, AUTOGRAD)
                        loop.add(self.operator, when + 0.1, 0.2, AUTOGRAD)
                    loop.add("gloo:all_reduce", at + 6, 2, GLOO, category="user_annotation")
                    if self.gpu:
                        loop.add_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 6, 2)
                if self.steps_between:
                    loop.add("Optimizer.step#SGD.step", at + 8.5, 0.5, category="user_annotation")
            loop.add("Optimizer.step#SGD.step", start + 48, 1, category="user_annotation")
        return loop

    def found(self) -> list[KnownCause]:
        return [one for one in self.loop().causes() if one.cause == "repeated_reduction"]


@pytest.mark.parametrize("case", [
    pytest.param(Accumulation(), id="DDP"),
    pytest.param(Accumulation(buckets=1), id="one bucket"),
    pytest.param(Accumulation(operator="c10d::_reduce_scatter_base_", called_in=BEHIND), id="FSDP2"),
    pytest.param(Accumulation(gpu=True), id="on a GPU"),
])  # fmt: skip
def test_each_pass_reduces_the_same(case: Accumulation) -> None:
    (found,) = case.found()
    assert (found.count, found.iterations) == (4, 6)
    assert found.time_ns == pytest.approx(6 * 4 * 2 * MS * 3 / 4, rel=0.01)


@pytest.mark.parametrize("case", [
    pytest.param(Accumulation(reducing=(3,)), id="under no_sync but for the last"),
    pytest.param(Accumulation(passes=1, reducing=(0,)), id="one pass"),
    pytest.param(Accumulation(passes=2, reducing=(0, 1), steps_between=True), id="a step after each pass"),
    pytest.param(Accumulation(passes=2, reducing=(0, 1), functions=("ConvolutionBackward0", "AddmmBackward0")),
                 id="two models"),
    pytest.param(Accumulation(called_in=f"{EVALUATES}SyncBatchNormBackward"), id="layers that communicate themselves"),
    pytest.param(Accumulation(reducing=()), id="one rank"),
])  # fmt: skip
def test_what_only_looks_like_it(case: Accumulation) -> None:
    assert not case.found()
