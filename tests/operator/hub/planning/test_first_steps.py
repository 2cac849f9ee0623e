"""The ranks whose first steps a window in iterations waits for, as tables: ranks as they are → what is said."""

from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Window
from fleetprof_operator.hub.planning.first_steps import find_stepless

SECOND = 10**9


def rank(step: int | None = 100, iteration_ns: int = SECOND, **fields: Any) -> pb.Process:
    state = None if step is None else pb.StepState(step=step, iteration_ns=iteration_ns, steps_per_iteration=1)
    return pb.Process(**({"has_agent": True, "polls_kineto": True, "step": state} | fields))


STEPS = rank()
WAITS = rank(None, has_agent=False, agent_waits=True, torch_version="2.15.0")
IMPORTS = rank(None, has_agent=False, agent_waits=True)
ONCE = rank(1, 0)  # torch.compile may take minutes before the second
NO_AGENT = rank(None, has_agent=False)


@pytest.mark.parametrize(
    ("ranks", "says"),
    [
        ([], ""),
        ([STEPS, STEPS], ""),
        ([STEPS, WAITS], "1 of 2 ranks have made no optimizer step yet"),
        ([ONCE], "1 of 1 ranks have not made their second iteration yet"),
        (
            [rank(None)],
            "1 of 1 ranks have not made their second iteration yet",
        ),  # its steps come next
        (
            [WAITS, ONCE, STEPS, WAITS],
            "2 of 4 ranks have made no optimizer step yet and 1 of 4 ranks have not made their second iteration yet",
        ),
        ([NO_AGENT, NO_AGENT], ""),  # nobody knows what they do
        ([NO_AGENT, WAITS], "1 of 2 ranks have made no optimizer step yet"),
        (
            [IMPORTS, WAITS, STEPS],
            "1 of 3 ranks are still importing PyTorch and 1 of 3 ranks have made no optimizer step yet",
        ),
    ],
)
def test_whose_iterations_are_not_there_yet(ranks: list[pb.Process], says: str) -> None:
    found = find_stepless(ranks, Window(iterations=5))
    assert found.partition(";")[0] == says
    assert ("(--duration, durationMillis) does not" in found) == bool(says)


@pytest.mark.parametrize("window", [Window(iterations=5), Window(duration_millis=500)])
def test_no_window_begins_while_pytorch_is_being_imported(window: Window) -> None:
    assert find_stepless([STEPS, IMPORTS], window) == "1 of 2 ranks are still importing PyTorch"


@pytest.mark.parametrize("ranks", [[WAITS], [ONCE], [NO_AGENT], [STEPS]])
def test_a_window_in_time_waits_for_no_step(ranks: list[pb.Process]) -> None:
    assert find_stepless(ranks, Window(duration_millis=500)) == ""
