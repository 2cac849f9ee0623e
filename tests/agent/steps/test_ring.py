"""The ring of steps and what is learned from it."""

from itertools import accumulate
from typing import Any

import pytest
from fleetprof_agent.steps.ring import MASK, SIZE, StepRing, find_period
from hypothesis import given
from hypothesis import strategies as st


def fill(rows: int, step_ns: int = 10) -> StepRing:
    """A ring after `rows` steps, `step_ns` apart, of one optimizer."""
    ring = StepRing()
    for row in range(rows):
        ring.step[row & MASK], ring.end_unix_ns[row & MASK] = row + 1, 1000 + row * step_ns
        ring.count = row + 1
    return ring


@given(rows=st.integers(0, 3 * SIZE), start=st.integers(0, 3 * SIZE), limit=st.integers(1, SIZE))
def test_read_gives_the_rows_that_are_still_there(rows: int, start: int, limit: int) -> None:
    after, steps, ends = fill(rows).read(start, limit)
    first = max(start, rows - SIZE, 0)
    assert steps == list(range(first + 1, min(rows, first + limit) + 1))
    assert ends == [1000 + (step - 1) * 10 for step in steps]
    assert after == (steps[-1] if steps else min(rows, first + limit))


@pytest.mark.parametrize(
    ("rows", "per_iteration", "expected"),
    [(0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 1, 10), (3, 2, 0), (100, 2, 20), (9999, 4, 40)],
)
def test_iteration_time(rows: int, per_iteration: int, expected: int) -> None:
    assert fill(rows).iteration_ns(per_iteration) == expected


@pytest.mark.parametrize(
    ("distances", "expected"),
    [
        ([10] * 30 + [10_000] + [10] * 8, 10),  # one stall
        ([10_000, 10], 10),  # the first one compiled
        ([10, 10_000], 10),
        ([500] * 30 + [10] * 3, 10),  # it has just become faster
        ([500] * 30 + [10, 500, 10, 500], 500),
        ([10] * 30 + [500] * 3, 10),  # slower: a step that is foretold too late comes all the same
    ],
)
def test_iteration_time_is_what_the_next_ones_will_take_at_the_least(distances: list[int], expected: int) -> None:
    ring = fill(len(distances) + 1)
    ring.end_unix_ns[: len(distances) + 1] = [1000 + end for end in accumulate(distances, initial=0)]
    assert ring.iteration_ns(1) == expected


@pytest.mark.parametrize(
    ("distances", "expected"),
    [
        ([10] * 3, 0),  # too few to tell
        ([10] * 4, 10),
        ([60] * 20 + [20, 22, 18, 20] + [60] * 8, 20),  # others left it the machine for a moment
        ([60] * 20 + [1] + [60] * 8, 45),  # a single short one
        ([1] * 4 + [60] * 32, 60),  # long ago
    ],
)
def test_fastest_iterations_in_succession(distances: list[int], expected: int) -> None:
    ring = fill(len(distances) + 1)
    ring.end_unix_ns[: len(distances) + 1] = [1000 + end for end in accumulate(distances, initial=0)]
    assert ring.fastest_iteration_ns(1) == expected


@pytest.mark.parametrize(
    ("sequence", "known", "expected"),
    [
        ("", 0, 0),
        ("A", 0, 0),
        ("AA", 0, 1),
        ("A", 1, 1),
        ("A" * 64, 3, 1),
        ("AB" * 32, 1, 2),
        ("ABA", 0, 0),  # not yet seen twice
        ("ABA", 1, 0),  # nor is it what was known of A alone
        ("ABAB", 1, 2),
        ("AABAB", 0, 2),  # the first step of B was skipped
        ("AABAB", 1, 2),
        ("DDGDD", 0, 0),  # D alone is no iteration
        ("DGGDDDGDGGDGDDGG", 0, 1),  # without order
        ("DDDG" * 16, 1, 4),
        ("DGDDDG" * 4, 1, 6),
        ("ABAB" + "B" + "ABAB" * 4, 2, 2),  # a skipped step: what is known stands
        ("A" * 63 + "B", 1, 1),  # every 64th step is another's
        ("BA" * 31 + "B", 1, 2),  # the window begins in the middle of an iteration
    ],
)
def test_optimizer_steps_per_iteration(sequence: str, known: int, expected: int) -> None:
    assert find_period([ord(letter) for letter in sequence], known) == expected


@given(pattern=st.lists(st.integers(0, 2), min_size=1, max_size=12), repeats=st.integers(3, 5), cut=st.integers(0, 11))
def test_period_of_a_repeated_pattern_repeats_it(pattern: list[int], repeats: int, cut: int) -> None:
    sequence = (pattern * repeats)[cut % len(pattern) :]
    period = find_period(sequence, 99)
    assert 1 <= period <= len(pattern)
    assert all(sequence[i] == sequence[i + period] for i in range(len(sequence) - period))


def test_ring_keeps_its_memory(monkeypatch: Any) -> None:
    assert len(fill(2 * SIZE).step) == SIZE
