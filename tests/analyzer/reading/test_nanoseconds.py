"""µs digits become exact integer nanoseconds, whatever way they are written."""

from decimal import Decimal

import numpy as np
import pytest
from fleetprof_analyzer.reading.columns.nanoseconds import MISSING, pack_durations, parse_microseconds
from fleetprof_analyzer.reading.columns.nanoseconds import read_durations as read_packed
from fleetprof_analyzer.trace.trace import Int64s
from hypothesis import given
from hypothesis import strategies as st


def read_durations(values: list[float | str | None]) -> Int64s:
    return read_packed(pack_durations(values))


@pytest.mark.parametrize(
    ("token", "nanoseconds"),
    [
        (b"1700000000000000.123", 1_700_000_000_000_000_123),  # float64 would give .000 or .250
        (b"4316232145169.913", 4_316_232_145_169_913),
        (b"1700000000000000", 1_700_000_000_000_000_000),
        (b"4611686018427387904", MISSING),
        (b"9223372036854775807.999", MISSING),
        (b"7", 7000),
        (b"0.5", 500),
        (b"12.25", 12_250),
        (b"0", 0),
        (b"0.000", 0),
        (b"-5", -5000),
        (b"-0.001", -1),
        (b"1e3", 1_000_000),
        (b"1.5e-2", 15),
        (b"0.0009", 0),  # below a nanosecond: cut
        (b'"12.5"', 12_500),  # a string, as some writers leave it
        (b'" 12.5"', 12_500),
        (b'"noon, or so"', MISSING),
        (b"", MISSING),
        (b"null", MISSING),
        (b"1e400", MISSING),
        (b"99999999999999999999", MISSING),
        (b"1e999999999", MISSING),
        (b"[1]", MISSING),
    ],
)
def test_one_number(token: bytes, nanoseconds: int) -> None:
    assert parse_microseconds([token]).tolist() == [nanoseconds]
    assert parse_microseconds([b"1.000", token, b"2.000"]).tolist() == [1000, nanoseconds, 2000]


NUMBERS = st.integers(0, 4 * 10**15).flatmap(
    lambda whole: st.sampled_from(["", ".0", ".5", ".25", ".123", ".999", ".1234567"]).map(
        lambda rest: f"{whole}{rest}"
    )
)


@given(st.lists(NUMBERS, max_size=40))
def test_any_mixture_equals_decimal_arithmetic(numbers: list[str]) -> None:
    found = parse_microseconds([number.encode() for number in numbers])
    assert found.dtype == np.int64
    assert found.tolist() == [int(Decimal(number) * 1000) for number in numbers]


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_garbage_is_missing_never_an_error(tokens: list[bytes]) -> None:
    assert len(parse_microseconds(tokens)) == len(tokens)


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        (0.0, 0),
        (7.0, 7000),
        (0.001, 1),
        (4.035, 4035),
        (86_400_000_000.001, 86_400_000_000_001),  # a day: what is longer is no duration
        (-0.001, -1),
        (0.0009, 0),  # below a nanosecond: cut
        (12.3459, 12_345),
        (12.345999999999999, 12_346),  # what other writers make of 12.346
        (4.7e15, MISSING),
        (1e300, MISSING),
        (1e308, MISSING),
        ("12.5", 12_500),
        ("no", MISSING),
        (None, MISSING),
    ],
)
def test_one_duration(value: float | str | None, nanoseconds: int) -> None:
    assert read_durations([value]).tolist() == [nanoseconds]
    assert read_durations([1.0, value, 2.0]).tolist() == [1000, nanoseconds, 2000]


@given(st.lists(st.integers(-(1 << 50), 1 << 50), max_size=40))
def test_durations_of_three_decimals_are_exact(nanoseconds: list[int]) -> None:
    assert read_durations([float(Decimal(value) / 1000) for value in nanoseconds]).tolist() == nanoseconds


@given(st.lists(st.integers(0, 10**9), max_size=40))
def test_durations_of_six_decimals_are_cut(picoseconds: list[int]) -> None:
    values: list[float | str | None] = [float(Decimal(value) / 10**6) for value in picoseconds]
    assert read_durations(values).tolist() == [value // 1000 for value in picoseconds]
