"""What a recording did to the iterations of its rank."""

import pytest
from fleetprof_api.ledger import TimeCost
from fleetprof_sidecar.capture.process_capture import Terms
from fleetprof_sidecar.samples.time_cost import measure_time


@pytest.mark.parametrize(
    ("ends", "cost"),
    [
        # Four before the order, one between, the recorded one, a stall, two after the trace was there.
        (
            {1: 0, 2: 10, 3: 20, 4: 40, 5: 50, 9: 90, 10: 105, 11: 155, 12: 165, 13: 175},
            TimeCost(iteration_before_ns=10, longest_before_ns=20, iteration_ns=15, stall_ns=40, iterations_after=2),
        ),
        ({9: 90, 10: 105}, TimeCost(iteration_before_ns=12, longest_before_ns=12, iteration_ns=15)),
        ({}, TimeCost(iteration_before_ns=12, longest_before_ns=12)),
        ({8: 90, 10: 105}, TimeCost(iteration_before_ns=12, longest_before_ns=12)),  # a step was lost
    ],
)
def test_what_a_recording_did_is_told_from_the_ends_of_steps(ends: dict[int, int], cost: TimeCost) -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=10, iterations=1, iteration_ns=12)
    assert measure_time(ends, terms, 60, 160) == cost


def test_of_a_window_by_time_nothing_is_told() -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, start_unix_ns=10)
    assert measure_time({1: 1, 2: 2}, terms, 1, 2) == TimeCost()


def test_several_optimizers_make_one_iteration() -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=5, iterations=2, steps_per_iteration=2)
    ends = {step: step * 10 for step in range(1, 13)}
    assert measure_time(ends, terms, 45, 80) == TimeCost(
        iteration_before_ns=20, longest_before_ns=20, iteration_ns=20, iterations_after=2
    )
