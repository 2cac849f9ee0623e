"""Modules are marked in the window's last iteration alone, whatever steps come and whenever the capture ends."""

from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_agent.modules import marked_iteration
from fleetprof_agent.modules.marked_iteration import MarkedIteration, mark_iteration


class Marks:
    """Notes what is called."""

    def __init__(self, _torch: Any) -> None:
        self.calls: list[str] = []
        self.table = self

    def begin(self) -> None:
        self.calls.append("begin")

    def end(self) -> None:
        self.calls.append("end")

    def stop(self) -> None:
        self.calls.append("stop")

    def read_optimizer(self, optimizer: str) -> None:
        self.calls.append(optimizer)

    def weigh(self) -> None:
        self.calls.append("weigh")

    def flush(self, _send: Any) -> bool:
        self.calls.append("flush")
        return True


@pytest.fixture(autouse=True)
def marks(monkeypatch: pytest.MonkeyPatch) -> list[Marks]:
    made: list[Marks] = []

    def make(torch: Any) -> Marks:
        made.append(Marks(torch))
        return made[-1]

    monkeypatch.setattr(marked_iteration, "ModuleMarks", make)
    return made


class Job:
    """Steps, and what is called after each."""

    def __init__(self) -> None:
        self.step = 0
        self.observe: Callable[[Any], None] | None = None

    def follow(self, observe: Callable[[Any], None] | None) -> None:
        self.observe = observe

    def make(self, step: int) -> None:
        self.step = step
        if self.observe is not None:
            self.observe(f"step {step}")

    def mark(self, **arm: Any) -> MarkedIteration | None:
        return mark_iteration(arm, object(), lambda: self.step, self.follow)


@pytest.mark.parametrize(
    ("steps", "stop_at", "calls"),
    [
        ([8, 9, 10, 11, 12, 13], None, ["begin", "step 11", "step 12", "end", "weigh", "flush"]),
        ([9, 10, 12], None, ["begin", "step 12", "end", "weigh", "flush"]),
        ([9, 11, 12], None, []),  # the order came too late
        ([13, 14], None, []),
        ([8, 9, 10, 11, 12], 9, ["stop"]),  # cancelled before it
        ([8, 9, 10, 11, 12], 11, ["begin", "stop", "end", "weigh", "flush"]),
    ],
)
def test_the_last_iteration_is_marked(
    marks: list[Marks], steps: list[int], stop_at: int | None, calls: list[str]
) -> None:
    """Two optimizers: the last measured step is 10, the window's last is 12."""
    job = Job()
    marked = job.mark(measured_step=10, last_step=12)
    assert marked is not None
    for step in steps:
        if step == stop_at:
            marked.stop()
        job.make(step)
    assert marked.flush(lambda _kind, **_fields: True)
    assert marks[0].calls == calls
    assert job.observe is None
    assert marked.is_over


@pytest.mark.parametrize(
    "arm",
    [{}, {"measured_step": None, "last_step": 12}, {"measured_step": 12, "last_step": 12}, {"measured_step": "10"}],
)
def test_without_an_iteration_to_mark_nothing_is_followed(arm: dict[str, Any], marks: list[Marks]) -> None:
    job = Job()
    assert job.mark(**arm) is None
    assert job.observe is None
    assert marks == []
