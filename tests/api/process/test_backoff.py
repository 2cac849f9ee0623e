"""Growing pauses: each within the upper half of its range, from the first to the longest."""

import pytest
from fleetprof_api.process.backoff import Backoff, draw_delay_s
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("failures", "first_s", "most_s", "longest_s"),
    [(0, 0.5, 30.0, 0.5), (1, 0.5, 30.0, 1.0), (5, 0.5, 30.0, 16.0), (6, 0.5, 30.0, 30.0), (10**6, 0.5, 30.0, 30.0)],
)
def test_a_delay_doubles_with_every_failure_up_to_the_longest(
    failures: int, first_s: float, most_s: float, longest_s: float
) -> None:
    drawn = [draw_delay_s(failures, first_s, most_s) for _ in range(100)]
    assert all(longest_s / 2 <= delay_s <= longest_s for delay_s in drawn)
    assert len(set(drawn)) > 1  # who failed together does not come back in step


@given(st.floats(0.001, 10), st.floats(10, 100), st.lists(st.booleans(), max_size=60))
def test_after_a_success_it_begins_anew(first_s: float, most_s: float, successes: list[bool]) -> None:
    pause = Backoff(first_s, most_s)
    longest_s = first_s
    for is_success in successes:
        if is_success:
            pause.reset()
            longest_s = first_s
        delay_s = pause.next_s()
        assert longest_s / 2 <= delay_s <= longest_s
        longest_s = min(most_s, 2 * longest_s)
