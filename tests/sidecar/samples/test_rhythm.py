"""The job's own pauses before a recorded iteration, and whether one was due."""

import pytest
from fleetprof_sidecar.samples.rhythm import Precedents, find_precedents
from hypothesis import given
from hypothesis import strategies as st

PAUSE, USUAL = 300, 25


def before(count: int, *pauses: tuple[int, int]) -> dict[int, int]:
    """`count` iterations; of each (period, phase) those at that distance, modulo the period, are pauses."""
    return {
        distance: PAUSE if any(distance % period == phase for period, phase in pauses) else USUAL
        for distance in range(1, count + 1)
    }


@pytest.mark.parametrize(
    ("lengths", "recorded", "expected"),
    [
        # Every fourth pauses, and the recorded one is a fourth; then it is none.
        (before(512, (4, 0)), 310, Precedents(128, 128, PAUSE, 4)),
        (before(512, (4, 1)), 310, Precedents(384, 0, USUAL, 4)),
        # Longer than its pauses by far.
        (before(512, (4, 0)), 700, Precedents(512, 0, PAUSE, 0)),
        # Every fourth and every tenth: the one rhythm that has both.
        (before(512, (4, 0), (10, 3)), 310, Precedents(179, 179, PAUSE, 20)),
        # Every seventh and every 90th: what the common rhythm would take is too long to be seen.
        (before(512, (7, 1), (90, 0)), 310, Precedents(438, 5, PAUSE, 7)),
        # A rhythm longer than a fourth of what is known is none.
        (before(512, (200, 0)), 310, Precedents(512, 2, PAUSE, 0)),
        (before(5), 310, Precedents(5, 0, USUAL, 0)),
        ({}, 310, Precedents(0, 0, 0, 0)),
        ({10**15: 5}, 310, Precedents(0, 0, 0, 0)),
    ],
)
def test_what_compares_with_a_recorded_iteration(lengths: dict[int, int], recorded: int, expected: Precedents) -> None:
    assert find_precedents(lengths, recorded) == expected


@given(st.integers(2, 150), st.integers(0, 149), st.integers(30, 512), st.randoms(use_true_random=False))
def test_pauses_that_keep_a_rhythm_are_foretold(period: int, offset: int, count: int, random: object) -> None:
    """Whatever their period, and up to 30 % longer and shorter; four must have been seen."""
    draw = random.uniform  # type: ignore[attr-defined]
    phase = offset % period
    lengths = {d: int((PAUSE if d % period == phase else USUAL) * draw(0.7, 1.3)) for d in range(1, count + 1)}
    found = find_precedents(lengths, int(PAUSE * draw(0.7, 1.3)))
    beats = sum(d % period == phase for d in lengths)
    if beats >= 4:
        assert (found.rhythm, found.alike) == (period, found.compared if phase == 0 else 0)


@given(st.dictionaries(st.integers(1, 600), st.integers(1, 1000), max_size=80), st.integers(0, 3000))
def test_whatever_was_measured_no_more_is_alike_than_compares(lengths: dict[int, int], recorded: int) -> None:
    found = find_precedents(lengths, recorded)
    assert 0 <= found.alike <= found.compared <= len(lengths)
