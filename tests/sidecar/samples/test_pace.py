"""The iterations before a recorded one that are at the pace that the job has now."""

from random import Random

import pytest
from fleetprof_sidecar.samples.pace import keep_pace
from hypothesis import given
from hypothesis import strategies as st


def before(*runs: tuple[int, int]) -> dict[int, int]:
    """(count, length) of iterations, the latest first; a length of 0 leaves them out, as a recording touched them."""
    lengths = [length for count, length in runs for _ in range(count)]
    return {distance: length for distance, length in enumerate(lengths, 1) if length}


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        (before((40, 100), (200, 25)), 40),  # slower
        (before((40, 25), (200, 100)), 40),  # faster
        (before((5, 100), (200, 25)), 5),
        (before((4, 100), (200, 25)), 204),  # too few to tell
        (before((200, 100), (4, 25)), 204),
        (before((10, 400), (10, 100), (200, 25)), 10),  # the latest change counts
        (before((200, 28), (200, 25)), 400),  # so small a change is none
        (before((6, 25), (3, 500), (200, 25)), 209),  # a pause that lasted
        (before((3, 500), (200, 25)), 203),
        # What a recording touched, between the two paces, may have made the change; elsewhere it may not.
        (before((40, 100), (2, 0), (200, 25)), 240),
        (before((20, 100), (2, 0), (20, 100), (200, 25)), 40),
        (before((40, 100), (100, 25), (2, 0), (100, 25)), 40),
        ({}, 0),
    ],
)
def test_what_is_kept(lengths: dict[int, int], kept: int) -> None:
    assert keep_pace(lengths) == dict(sorted(lengths.items())[:kept])


@given(st.integers(2, 60), st.integers(0, 59), st.floats(2, 100), st.integers(0, 9))
def test_pauses_that_keep_a_rhythm_are_no_change(period: int, phase: int, factor: float, seed: int) -> None:
    draw = Random(seed).uniform
    lengths = {d: int(1e6 * draw(0.85, 1.2) * (factor if d % period == phase else 1)) for d in range(1, 513)}
    assert keep_pace(lengths) == lengths


@given(st.dictionaries(st.integers(1, 600), st.integers(1, 1000), max_size=80))
def test_whatever_was_measured_the_latest_stay(lengths: dict[int, int]) -> None:
    kept = keep_pace(lengths)
    assert kept.items() <= lengths.items()
    assert list(kept) == sorted(lengths)[: len(kept)] or kept == lengths
