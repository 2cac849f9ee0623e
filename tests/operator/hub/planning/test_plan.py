"""The begin of a capture, as tables, and as properties over all polls and paces."""

import time
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Window
from fleetprof_operator.hub.planning.plan import expect_poll, find_obstacle, find_unsteady, make_plan
from hypothesis import given
from hypothesis import strategies as st

MS = 10**6
SECOND = 10**9
NOW = 1_000_000 * SECOND


def rank(
    *,
    polled: int = 0,
    interval: int = 1000,
    step: int = 100,
    at: int = 0,
    iteration: int = 100,
    per: int = 1,
    fastest: int = 0,
    **more: Any,
) -> pb.Process:
    """A rank; all times in ms, `polled` and `at` before now."""
    given_fields: dict[str, Any] = {
        "has_agent": True,
        "polls_kineto": True,
        "device_kind": "cpu",
        "last_poll_unix_ns": NOW - polled * MS,
        "poll_interval_ns": interval * MS,
        "step": pb.StepState(
            step=step,
            at_unix_ns=NOW - at * MS,
            iteration_ns=iteration * MS,
            steps_per_iteration=per,
            fastest_iteration_ns=fastest * MS,
        ),
    }
    return pb.Process(**(given_fields | more))


FIVE = Window(iterations=5)


@pytest.mark.parametrize(
    ("process", "expected_ms"),
    [
        # margin: 1 s + a tenth of the interval; sending takes 100 ms
        (rank(polled=0), 1000 + 1100),
        (rank(polled=300), 700 + 1100),
        (rank(polled=899), 101 + 1100),
        (rank(polled=950), 1050 + 1100),  # the next poll comes before the order does
        (rank(polled=1800), 200 + 1100),  # one poll was not seen
        (rank(polled=5900), 100 + 1100),  # news of some were lost
        (rank(polled=6100), 100 + 10_000 + 1000),  # it may be backing off
        (rank(polled=-500), 100 + 1000 + 1100),  # its clock is ahead
        (rank(polled=1000, interval=5000), 4000 + 1500),
        (rank(polled=300, poll_lateness_ns=250 * MS), 700 + 1100 + 250),  # its machine is busy
        (rank(polled=300, poll_lateness_ns=60 * SECOND), 700 + 1100 + 5000),
        (rank(polled=1000, interval=0), 100 + 10_000 + 1000),  # it has polled once, or not regularly
    ],
)
def test_when_a_process_has_its_order(process: pb.Process, expected_ms: int) -> None:
    assert (expect_poll(process, NOW) - NOW) / MS == expected_ms


@pytest.mark.parametrize(
    ("ranks", "says"),
    [
        ([rank(), rank(interval=5000, polled=5000)], ""),
        ([rank(), rank(interval=0)], "1 of 2 ranks do not ask for orders regularly yet"),
        ([rank(polled=5900)], ""),
        ([rank(polled=6100)], "1 of 1 ranks"),
        ([rank(interval=200, polled=2500)], ""),  # polls are told with heartbeats, every two seconds
        ([rank(polled=-500)], ""),
    ],
)
def test_whose_next_poll_nobody_can_foretell(ranks: list[pb.Process], says: str) -> None:
    unsteady = find_unsteady(ranks, NOW)
    assert (says in unsteady) if says else (unsteady == "")


@pytest.mark.parametrize(
    ("ranks", "first_step", "start_ms"),
    [
        # P = 2100 ms; 1.1 * 2100 / 100 = 23.1 → 24 steps; F = 100 + 24 + 2; F - 1 ends after 25 steps
        ([rank()], 126, 2500),
        ([rank(), rank(step=103)], 129, 2500),  # the one that is ahead decides
        ([rank(), rank(polled=0, interval=5000)], 100 + 72 + 2, 7300),  # the slowest poller decides
        ([rank(at=400)], 100 + 28 + 2, 2500),  # a step report that is old is carried forward
        ([rank(iteration=10_000)], 100 + 1 + 2, 20_000),
        ([rank(fastest=95)], 126, 2500),  # within the tenth
        ([rank(fastest=50)], 100 + 42 + 2, 4300),  # it was twice as fast for a moment, and may be again
        ([rank(fastest=1)], 100 + 63 + 2, 6400),
        ([rank(iteration=2)], 100 + 1155 + 2, 2312),
        # two optimizers: 50 ms a step, 47 steps, F = 149 → (F - 1) % 2 == 0
        ([rank(per=2)], 149, 2400),
        ([rank(per=2, step=101)], 151, 2450),
        ([rank(per=4)], 100 + 93 + 2 + 2, 2400),
    ],
)
def test_begin_at_one_step(ranks: list[pb.Process], first_step: int, start_ms: int) -> None:
    plan = make_plan(ranks, FIVE, NOW)
    assert (plan.mode, plan.first_step, (plan.start_unix_ns - NOW) / MS) == ("step", first_step, start_ms)
    assert plan.duration_ns == 0
    # A time of the clock, since the sentence stays in the request when it has ended.
    begins = time.strftime("%H:%M:%S", time.gmtime(plan.start_unix_ns // SECOND))
    assert plan.explanation.startswith(f"all begin with step {first_step}, expected at {begins}.")
    assert plan.explanation.endswith(" UTC")


def test_a_patient_plan_leaves_every_rank_as_long_as_one_whose_polls_have_no_rhythm() -> None:
    # P = 11,100 ms; 1.1 * 11,100 / 100 = 122.1 → 123 steps
    plan = make_plan([rank(), rank(step=103)], FIVE, NOW, patient=True)
    assert (plan.mode, plan.first_step) == ("step", 103 + 123 + 2)
    assert plan.deliver_until_unix_ns - NOW >= 11_100 * MS


@pytest.mark.parametrize(
    ("ranks", "warmup", "first_step", "deliver_ms", "start_ms"),
    [
        ([rank()], 0, 126, 2400, 2500),
        ([rank()], 3, 129, 2400, 2800),  # three steps later, and to be delivered before them
        # as many steps as the ranks' iterations have in common: 3 * 2 and 3 * 4
        ([rank(per=2)], 3, 155, 2350, 2700),
        ([rank(per=2), rank(per=4)], 3, 209, 2375, 2700),
        ([rank(iteration=10_000)], 2, 105, 10_000, 40_000),
    ],
)
def test_warm_up_iterations_move_the_start_and_not_the_delivery(
    ranks: list[pb.Process], warmup: int, first_step: int, deliver_ms: int, start_ms: int
) -> None:
    plan = make_plan(ranks, Window(iterations=5, warmup_iterations=warmup), NOW)
    assert plan.first_step == first_step
    assert ((plan.deliver_until_unix_ns - NOW) / MS, (plan.start_unix_ns - NOW) / MS) == (deliver_ms, start_ms)


@pytest.mark.parametrize(
    ("ranks", "window", "says"),
    [
        ([rank(), rank(has_agent=False)], FIVE, "1 of 2 ranks have no agent"),
        ([rank(step=0)], FIVE, "have not made enough optimizer steps yet"),
        ([rank(iteration=0)], FIVE, "have not made enough optimizer steps yet"),
        ([rank(at=11_000)], FIVE, "have made no optimizer step for a while"),
        ([rank(at=11_000, iteration=3000)], FIVE, ""),  # slow, but moving
        ([rank(per=7), rank(per=13)], FIVE, "different numbers of optimizer steps"),
        ([rank()], Window(duration_millis=500), "the window is a length of time"),
        ([rank(), rank(per=2)], FIVE, ""),
    ],
)
def test_what_stands_against_one_step(ranks: list[pb.Process], window: Window, says: str) -> None:
    obstacle = find_obstacle(ranks, window, NOW)
    assert (says in obstacle) if says else (obstacle == "")
    assert make_plan(ranks, window, NOW).mode == ("time" if says else "step")


@pytest.mark.parametrize(
    ("ranks", "window", "start_ms", "deliver_ms", "duration_ms", "says"),
    [
        # P + 1.75 s, and 2 s for CUPTI's start wherever a device may be
        ([rank(has_agent=False, step=0)], FIVE, 3850, 2350, 600, "600 ms for 5 iterations of 100 ms"),
        ([rank(has_agent=False, device_kind="cuda")], FIVE, 5850, 2350, 600, "600 ms for 5 iterations"),
        ([rank(has_agent=False, device_kind="")], FIVE, 5850, 2350, 600, "600 ms for 5 iterations"),
        ([rank(has_agent=False, iteration=0)], FIVE, 3850, 2350, 2000, "the iteration time is unknown"),
        ([rank(has_agent=False, iteration=1)], FIVE, 3850, 2350, 10, "10.0 ms for 5 iterations of 1.00 ms"),
        ([rank(has_agent=False, iteration=20_000)], FIVE, 3850, 2350, 60_000, "the longest that is allowed"),
        ([rank()], Window(duration_millis=500), 3850, 2350, 500, "the window is 500 ms"),
        ([rank(interval=5000)], Window(duration_millis=500), 8250, 6750, 500, "the window is 500 ms"),
    ],
)
def test_begin_at_one_time(
    ranks: list[pb.Process], window: Window, start_ms: int, deliver_ms: int, duration_ms: int, says: str
) -> None:
    plan = make_plan(ranks, window, NOW)
    assert (plan.mode, plan.first_step) == ("time", None)
    assert (plan.start_unix_ns - NOW) / MS == start_ms
    assert (plan.deliver_until_unix_ns - NOW) / MS == deliver_ms
    assert plan.duration_ns / MS == duration_ms
    assert says in plan.explanation


RANKS = st.builds(
    rank,
    polled=st.integers(-5_000, 100_000),
    interval=st.integers(0, 10_000),
    step=st.integers(0, 10**7),
    at=st.integers(-2_000, 30_000),
    iteration=st.integers(0, 100_000),
    fastest=st.integers(0, 100_000),
    poll_lateness_ns=st.integers(0, 10 * SECOND),
    per=st.integers(1, 8),
    has_agent=st.booleans(),
    device_kind=st.sampled_from(["cpu", "cuda", ""]),
)
WINDOWS = st.one_of(
    st.builds(Window, iterations=st.integers(1, 100), warmup_iterations=st.none() | st.integers(0, 100)),
    st.builds(Window, duration_millis=st.integers(10, 60_000)),
)


@given(ranks=st.lists(RANKS, min_size=1, max_size=6), window=WINDOWS)
def test_every_rank_can_be_told_in_time(ranks: list[pb.Process], window: Window) -> None:
    plan = make_plan(ranks, window, NOW)
    for process in ranks:
        assert NOW < expect_poll(process, NOW) <= plan.deliver_until_unix_ns
    assert plan.deliver_until_unix_ns < plan.start_unix_ns
    if plan.mode == "time":
        assert plan.start_unix_ns % MS == 0
        assert 10 * MS <= plan.duration_ns <= 60 * SECOND
        return
    assert plan.first_step is not None
    for process in ranks:
        step = process.step
        assert (plan.first_step - 1) % step.steps_per_iteration == 0
        # Where the rank is when the last one has its order, a tenth faster than it was: not beyond F - 2 and what
        # Kineto does before that to warm up.
        polled = max(expect_poll(p, NOW) for p in ranks)
        step_ns = step.iteration_ns / step.steps_per_iteration
        ahead = max(0, polled - step.at_unix_ns) * 1.1 / step_ns
        last = plan.first_step - 2 - (window.warmup_iterations or 0) * step.steps_per_iteration
        assert step.step + ahead <= last + 1e-6 * plan.first_step
        # Nor is it when the order's time is over, at the pace that it has.
        at_the_last = max(0, plan.deliver_until_unix_ns - step.at_unix_ns) / step_ns
        assert step.step + at_the_last <= last + 1e-6 * plan.first_step


@pytest.mark.parametrize(
    ("profiler", "lead_steps", "margin_ms"),
    [
        (None, 2, 1500),  # Kineto
        (pb.Profiler(name="tiny"), 0, 0),
        (pb.Profiler(name="slow", steps_before_first=5, delivery_margin_ns=3 * SECOND), 5, 3000),
        (pb.Profiler(name="absurd", steps_before_first=1 << 30, delivery_margin_ns=1 << 60), 100, 60_000),
    ],
)
def test_a_profiler_says_how_early_its_orders_must_be_there(
    profiler: pb.Profiler | None, lead_steps: int, margin_ms: int
) -> None:
    process = rank(profiler=profiler)
    by_step = make_plan([process], FIVE, NOW).first_step
    assert by_step is not None
    kinetos = make_plan([rank()], FIVE, NOW).first_step
    assert kinetos is not None
    assert by_step == kinetos - 2 + lead_steps
    by_time = make_plan([process], Window(duration_millis=500), NOW)
    assert by_time.start_unix_ns - by_time.deliver_until_unix_ns == margin_ms * MS
