"""The next poll of a client, as far as it can be foretold, as tables over what came before."""

import pytest
from fleetprof_sidecar.processes.rhythm import PollRhythm
from hypothesis import given
from hypothesis import strategies as st

MS = 10**6


def note_all(elapsed_ms: list[float]) -> PollRhythm:
    rhythm = PollRhythm()
    for elapsed in elapsed_ms:
        rhythm.note(int(elapsed * MS))
    return rhythm


@pytest.mark.parametrize(
    ("elapsed_ms", "interval_ms", "steady"),
    [
        ([], 0, False),
        ([1000], 0, False),  # the second poll: the first may have come late
        ([1000, 1000], 1000, True),
        ([1000, 1000, 1000], 1000, True),
        ([400, 1000], 0, False),
        ([400, 1000, 1000], 1000, True),
        ([1000, 1000, 1200], 1050, True),  # smoothed: a machine under load
        ([1000, 1000, 2000], 1250, True),
        ([1000, 1000, 2100], 1000, False),  # one poll was missed
        ([1000, 1000, 2100, 1000], 1000, True),
        ([1000, 1000, 6300], 1000, False),  # it backed off: Kineto's longest pause
        ([1000, 1000, 8000, 3, 2, 1000], 1000, True),  # we were stopped: what had waited comes in a burst
        ([1000, 1000, 8000, 3, 2], 1000, False),
        ([1000, 1000, 8000, 3, 2, 4500], 1000, False),  # and the client backs off
        ([1000, 1000, 8000, 3, 2, 4500, 1000], 1000, True),
        ([1000, 1000, 5000, 5100], 5100, True),  # its base config was changed
        ([1000, 1000, 60_000, 1000], 1000, True),  # a pause of the process
        ([3, 2, 1000, 1000], 1000, True),  # a client that is first seen in a burst
        ([1000, 1000, -50], 1000, False),  # the clock was set back
    ],
)
def test_rhythm(elapsed_ms: list[float], interval_ms: float, steady: bool) -> None:
    rhythm = note_all(elapsed_ms)
    assert (rhythm.interval_ns / MS, rhythm.is_steady) == (interval_ms, steady)


@pytest.mark.parametrize(
    ("elapsed_ms", "lateness_ms"),
    [
        ([1000, 1000, 1000], 0),
        ([1000, 1000, 1400], 400),
        ([1000, 1000, 800], 0),
        ([1000, 1000, 1400, 1100], 320),  # the interval is 1100 by then: punctual, and not yet forgotten
        ([1000, 1000, 6300], 0),  # not late, but out of rhythm
        ([1000, 1000, 1400, *[1000] * 40], 0),
    ],
)
def test_lateness(elapsed_ms: list[float], lateness_ms: int) -> None:
    assert round(note_all(elapsed_ms).lateness_ns / MS) == lateness_ms


@given(st.lists(st.integers(-(10**9), 10**12)), st.integers(10**8, 10**10))
def test_two_regular_polls_are_enough_whatever_came_before(before: list[int], interval_ns: int) -> None:
    rhythm = PollRhythm()
    for elapsed in [*before, interval_ns, interval_ns]:
        rhythm.note(elapsed)
    assert rhythm.is_steady
    assert interval_ns / 2 <= rhythm.interval_ns <= 2 * interval_ns
