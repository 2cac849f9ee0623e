"""The effect of a recording to the iterations of its rank."""

import pytest
from fleetprof_api.ledger import TimeCost
from fleetprof_sidecar.capture.process_capture import ProcessCapture, RecordedSpan, Terms
from fleetprof_sidecar.capture.recording_history import RecordingHistory
from fleetprof_sidecar.samples.time_cost import measure_time


@pytest.mark.parametrize(
    ("ends", "cost"),
    [
        # Four before the order, one between, the recorded one, a stall, two after the trace was there.
        (
            {2: 0, 3: 10, 4: 20, 5: 40, 6: 50, 9: 90, 10: 105, 11: 155, 12: 165, 13: 175},
            TimeCost(
                iteration_before_ns=10,
                longest_before_ns=20,
                iteration_ns=15,
                stall_ns=40,
                compared_before=4,
                alike_before=4,
                iterations_after=2,
            ),
        ),
        # The first two of the process are no example, nor is the one in which the recording begins.
        (
            {0: 0, 1: 90, 2: 190, 3: 200, 8: 80, 9: 150, 10: 200},
            TimeCost(iteration_before_ns=10, longest_before_ns=10, iteration_ns=50, compared_before=1),
        ),
        ({9: 90, 10: 105}, TimeCost(iteration_before_ns=12, longest_before_ns=12, iteration_ns=15)),
        ({}, TimeCost(iteration_before_ns=12, longest_before_ns=12)),
        ({8: 90, 10: 105}, TimeCost(iteration_before_ns=12, longest_before_ns=12)),  # a step was lost
    ],
)
def test_what_a_recording_did_is_told_from_the_ends_of_steps(ends: dict[int, int], cost: TimeCost) -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=10, iterations=1, iteration_ns=12)
    assert measure_time(ends, terms, 160) == cost


def test_an_iteration_whose_modules_were_marked_is_none_of_the_job() -> None:
    terms = Terms(
        capture_id="c", process_id="p", rank=0, first_step=10, iterations=1, collect=["ModuleTree"], has_agent=True
    )
    ends = {7: 70, 8: 80, 9: 90, 10: 102, 11: 902, 12: 932, 13: 942}  # 11 is marked, 12 had the stall
    assert measure_time(ends, terms, 920) == TimeCost(
        iteration_before_ns=10,
        longest_before_ns=10,
        iteration_ns=12,
        stall_ns=20,
        compared_before=1,
        alike_before=1,
        iterations_after=2,
    )


def test_what_an_earlier_capture_recorded_is_no_example_of_the_job() -> None:
    earlier = RecordedSpan(from_step=5, from_unix_ns=30, until_unix_ns=95)
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=10, iterations=1, recorded=[earlier])
    ends = {2: 0, 3: 10, 4: 35, 5: 45, 6: 90, 7: 120, 8: 130, 10: 140}  # 4 is before its first step, 7 had its stall
    assert measure_time(ends, terms, 160) == TimeCost(
        iteration_before_ns=10, longest_before_ns=25, compared_before=3, alike_before=3
    )


def test_one_that_ended_is_remembered_with_the_steps_that_it_touched() -> None:
    history = RecordingHistory()
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=10, iterations=1, warmup_iterations=2)
    for number in range(12):
        history.note(ProcessCapture(terms=terms, armed_unix_ns=number + 1, written_unix_ns=number + 2))
    history.note(ProcessCapture(terms=terms, failed_unix_ns=5))  # it was never armed
    known = history.recorded("p")
    assert len(known) == 8
    assert known[-1] == RecordedSpan(from_step=7, from_unix_ns=12, until_unix_ns=13)
    history.forget("p")
    assert not history.recorded("p")


def test_of_a_window_by_time_nothing_is_told() -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, start_unix_ns=10)
    assert measure_time({1: 1, 2: 2}, terms, 2) == TimeCost()


def test_several_optimizers_make_one_iteration() -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=9, iterations=2, steps_per_iteration=2)
    ends = {step: step * 10 for step in range(1, 17)}
    assert measure_time(ends, terms, 120) == TimeCost(
        iteration_before_ns=20,
        longest_before_ns=20,
        iteration_ns=20,
        compared_before=1,
        alike_before=1,
        iterations_after=2,
    )
