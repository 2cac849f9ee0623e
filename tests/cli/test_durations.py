"""Lengths of time on the command line, as kubectl takes and prints them."""

import click
import pytest
from fleetprof_api.request import Spec
from fleetprof_cli.durations import Duration, format_duration, parse_duration, say_duration
from hypothesis import given
from hypothesis import strategies as st

S = 10**9


@pytest.mark.parametrize(
    ("text", "length_ns"),
    [
        ("40s", 40 * S),
        ("2m", 120 * S),
        ("1h30m", 5400 * S),
        ("1h0m1s", 3601 * S),
        ("500ms", S // 2),
        ("1.5h", 5400 * S),
        ("0.25s", S // 4),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("7ns", 7),
        ("0", 0),
        ("900", 900 * S),
        ("1.5", 1_500_000_000),
    ],
)
def test_what_is_taken(text: str, length_ns: int) -> None:
    assert parse_duration(text) == length_ns


@pytest.mark.parametrize(
    "text", ["", "s", "40 s", "1d", "-1s", "1h30", "40S", "1e3", "½s", "1h 30m", "9" * 13, "1..5s"]
)
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration, for example 40s, 2m or 1h30m"):
        parse_duration(text)


@given(st.integers(0, 10**18))
def test_what_is_written_can_be_given_back(length_ns: int) -> None:
    assert parse_duration(format_duration(length_ns)) == length_ns


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0.9, "0s"),
        (40, "40s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (610, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_100, "3h5m"),
        (28_900, "8h"),
        (172_799, "47h"),
        (180_000, "2d2h"),
        (800_000, "9d"),
    ],
)
def test_how_long_ago_is_said_as_kubectl_says_it(seconds: float, text: str) -> None:
    """The rows are those of Kubernetes' duration.HumanDuration."""
    assert say_duration(int(seconds * S)) == text


DEADLINE = Duration.of_field(Spec, "active_deadline_seconds")


@pytest.mark.parametrize(("text", "seconds"), [("40s", 40), ("40", 40), ("24h", 86_400)])
def test_a_fields_bounds_hold_for_every_way_to_write_it(text: str, seconds: int) -> None:
    assert DEADLINE.convert(text, None, None) == seconds


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("29s", "29s is not in the range 30s to 24h"),
        ("25h", "25h is not in the range 30s to 24h"),
        ("40s500ms", "must be a multiple of 1s"),
        ("soon", "'soon' is not a duration"),
    ],
)
def test_what_a_field_cannot_be_is_said_with_its_bounds(text: str, rule: str) -> None:
    with pytest.raises(click.BadParameter, match=rule):
        DEADLINE.convert(text, None, None)
