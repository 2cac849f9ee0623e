"""Collectives of a few bytes by the dozen, called by the training thread itself; and those that are none."""

from dataclasses import dataclass
from typing import Any

import pytest
from fleetprof_api.report.rank_tables import KnownCause
from fleetprof_api.samples import CodePlace
from harness.traces.written_loop import AUTOGRAD, GLOO, MAIN, TRAIN, WrittenLoop

MS = 1_000_000
LOG = CodePlace(file="/home/me/train.py", function="log_metrics", line=58)
TORCH = CodePlace(
    file="/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", function="all_reduce", line=9
)


@dataclass
class Metrics:
    """`calls` in the first half of each iteration, each waits until the next; `elements` None: not recorded."""

    calls: int = 20
    elements: int | None = 1
    length_ms: float = 0.2
    thread: int = MAIN
    inside: str = ""
    gpu: bool = False
    iteration_ms: float = 10

    def found(self) -> list[KnownCause]:
        whole = self.iteration_ms
        loop = WrittenLoop(gpu=self.gpu, length_ms=whole, forward_at_ms=0.6 * whole, backward_at_ms=0.75 * whole)
        for number in range(12):
            for call in range(self.calls):
                at = whole * (number + call / self.calls / 2)
                if self.inside:
                    category = "user_annotation" if self.inside[0] in "FO" else "cpu_op"
                    loop.add(self.inside, at, self.length_ms, category=category)
                loop.add("c10d::allreduce_", at, 0.02, self.thread)
                if self.elements is not None:
                    details: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": self.elements,
                                               "Out msg nelems": self.elements, "dtype": "Float"}  # fmt: skip
                    loop.add("record_param_comms", at + 0.005, 0.01, self.thread, **details)
                loop.add("gloo:all_reduce", at + 0.03, self.length_ms - 0.03, GLOO, category="user_annotation")
            for look in range(1, 5):
                loop.look(whole * number + look, TORCH, LOG, TRAIN)
        loop.look_all_along()
        return [one for one in loop.causes() if one.cause == "small_collectives"]


@pytest.mark.parametrize(("case", "message_bytes"), [
    (Metrics(), 4), (Metrics(elements=500), 2000), (Metrics(elements=None), None), (Metrics(gpu=True), 4),
])  # fmt: skip
def test_what_counts(case: Metrics, message_bytes: int | None) -> None:
    (found,) = case.found()
    assert (found.count, found.iterations, found.message_bytes) == (20, 12, message_bytes)
    # From the first call to the end of the last one: what is between them makes or reads a value.
    assert found.time_ns == pytest.approx(12 * (19 * 0.25 + 0.2) * MS, rel=0.01)
    assert found.place is not None
    assert found.place.function == "log_metrics"


@pytest.mark.parametrize("case", [
    pytest.param(Metrics(calls=9), id="nine"),
    pytest.param(Metrics(elements=100_000), id="large ones"),
    pytest.param(Metrics(elements=None, calls=10, length_ms=1.2, iteration_ms=30), id="long ones without a size"),
    pytest.param(Metrics(thread=AUTOGRAD), id="called by autograd"),
    pytest.param(Metrics(inside="SyncBatchNorm"), id="called by a layer"),
    pytest.param(Metrics(inside="FSDP::all_gather (2)"), id="gathered by FSDP"),
    pytest.param(Metrics(inside="Optimizer.step#ZeRO.step"), id="gathered by a sharded optimizer"),
])  # fmt: skip
def test_what_does_not(case: Metrics) -> None:
    assert not case.found()
