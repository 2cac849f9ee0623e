"""The reports to the sidecar of a process's steps, report by report."""

from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_agent.steps.reports import StepReports
from fleetprof_agent.steps.ring import StepRing

MS = 1_000_000
LATER_NS = 10_000 * MS


class ListeningChannel:
    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def send(self, kind: str, **fields: Any) -> bool:
        if kind == "steps":
            self.steps.append(fields)
        return True


@pytest.mark.parametrize(
    ("optimizers", "iteration_ms", "per_iteration"),
    [
        ("A", 0, 1),
        ("AA", 0, 1),
        ("AAA", 300, 1),
        ("ABA", 0, 1),  # 1 ms and 299 ms are no iterations
        ("ABAB", 300, 2),
        ("ABABA", 300, 2),
    ],
)
def test_an_iteration_has_a_length_once_it_is_known_which_steps_make_it(
    optimizers: str, iteration_ms: int, per_iteration: int
) -> None:
    """Steps of an iteration are 1 ms apart, iterations 300 ms. The report is one that a slow iteration makes due."""
    ring, channel = StepRing(), ListeningChannel()
    memory: Any = SimpleNamespace(headroom_bytes=lambda: 0)
    reports = StepReports(channel, ring, memory, {})  # type: ignore[arg-type]
    of_iteration = len(set(optimizers))
    for row, optimizer in enumerate(optimizers):
        ring.step[row], ring.optimizer[row] = row + 1, ord(optimizer)
        ring.end_unix_ns[row] = LATER_NS + (row // of_iteration * 300 + row % of_iteration) * MS
        ring.count = row + 1
    reports.send_due(ring.end_unix_ns[ring.count - 1], "")
    (report,) = channel.steps
    assert (report["iteration_ns"], report["per_iteration"]) == (iteration_ms * MS, per_iteration)
    assert reports.step_ns() == iteration_ms * MS // per_iteration
