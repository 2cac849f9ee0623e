"""Reads microsecond numbers, as Kineto writes them, into exact integer nanoseconds.

A float64 holds 1700000000000000.123 only to 0.25 µs, so the digits of times are read themselves; it holds durations up
to 2^50 ns, 13 days, and reading those from floats takes a fifth. Guarantees: exact for every number with up to three
decimals; further decimals are cut (towards zero); what is no number becomes `MISSING`.
"""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from math import nan
from struct import error, pack
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

MISSING: Final = np.iinfo(np.int64).min
_LARGEST: Final = 1 << 62
_DOT: Final = ord(".")
_SPACE: Final = ord(" ")
_BYTES: Final = np.zeros(256, np.bool_)
_BYTES[list(b"0123456789. ")] = True
# strtoll stops at 2^63 - 1: what comes out above _LARGEST is read again, digit by digit.
_FAST_LENGTH: Final = 20
# With the space behind it: `0.000 `, and what stays below _LARGEST.
_EQUAL_WIDTHS: Final = (6, 20)
# Of a number read into a float64 and multiplied once: half a unit in the last place, twice.
_FLOAT_ERROR: Final = 2.0**-51
_TENS: Final = 10 ** np.arange(18, -1, -1, dtype=np.int64)
_FACTORS: Final = np.array([1000, 100, 10, 1], np.int64)


def parse_microseconds(tokens: Sequence[msgspec.Raw | bytes]) -> Int64s:
    """Nanoseconds of JSON number tokens in µs. Shape (len(tokens),), int64; unreadable ones are MISSING."""
    return parse_joined(join_tokens(tokens), len(tokens))


def join_tokens(tokens: Sequence[msgspec.Raw | bytes]) -> bytes:
    """Tokens with a space after each but the last, and no other."""
    text = b" ".join(tokens)
    if text.count(b" ") >= len(tokens):
        text = b" ".join([bytes(token).replace(b" ", b"") for token in tokens])
    return text


def parse_joined(text: bytes, count: int) -> Int64s:
    """As `parse_microseconds`, of `count` tokens as `join_tokens` joins them; several such texts too, joined again."""
    if not count:
        return np.zeros(0, np.int64)
    fast = _parse_equal(text, count)
    if fast is None:
        fast = _parse_regular(text, count)
    return np.array([_parse_one(token) for token in text.split(b" ")], np.int64) if fast is None else fast


def pack_durations(values: Sequence[float | str | None]) -> bytes:
    """Durations in µs, numbers or texts, as float64s for `read_durations`."""
    try:
        return pack(f"{len(values)}d", *values)
    except error:
        return pack(f"{len(values)}d", *map(_to_float, values))


def read_durations(packed: bytes | bytearray) -> Int64s:
    """Nanoseconds of durations that `pack_durations` has packed. Shape (n,); unreadable ones are MISSING.

    Exact below 2^50 ns. Decimals are cut behind the third, except where a float64 cannot tell them from a full one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.frombuffer(packed) * 1000
        nearest, size = np.rint(scaled), np.abs(scaled)
        cut = np.where(np.abs(scaled - nearest) <= size * _FLOAT_ERROR, nearest, np.trunc(scaled))
    return np.where(size < _LARGEST, cut, MISSING).astype(np.int64)


def _to_float(value: float | str | None) -> float:
    if isinstance(value, float):
        return value
    nanoseconds = MISSING if value is None else _parse_one(value.encode())
    return nan if nanoseconds == MISSING else nanoseconds / 1000


def _parse_equal(text: bytes, count: int) -> Int64s | None:
    """All tokens at once where each has as many digits as the first and three decimals, as Kineto's `ts`; else None."""
    width, rest = divmod(len(text) + 1, count)
    if rest or not _EQUAL_WIDTHS[0] <= width <= _EQUAL_WIDTHS[1]:
        return None
    characters = np.frombuffer(text + b" ", np.uint8).reshape(count, width)
    if (characters[:, -1] != _SPACE).any() or (characters[:, -5] != _DOT).any():
        return None
    digits = np.concatenate((characters[:, :-5], characters[:, -4:-1]), axis=1) - ord("0")
    if digits.max() > 9:
        return None
    values: Int64s = np.einsum("ij,j->i", digits.astype(np.int64), _TENS[-digits.shape[1] :])
    return values


def _parse_regular(text: bytes, count: int) -> Int64s | None:
    """All tokens at once where each is digits with none, or each with three decimals; else None."""
    characters = np.frombuffer(text, np.uint8)
    if not _BYTES[characters].all():
        return None
    ends = np.append(np.flatnonzero(characters == _SPACE), len(text))
    if len(ends) != count:
        return None
    lengths = np.diff(ends, prepend=-1) - 1
    if lengths.min() < 1 or lengths.max() > _FAST_LENGTH:
        return None
    dots = np.flatnonzero(characters == _DOT)
    if len(dots) == 0:
        return _scaled(text, _FACTORS[:1])
    # Three decimals everywhere: without the point the number is nanoseconds.
    if len(dots) == count and (ends - dots == 4).all() and lengths.min() > 4:
        return _scaled(text.replace(b".", b""), _FACTORS[3:])
    return _parse_mixed(characters, ends, lengths, dots)


def _parse_mixed(characters: npt.NDArray[np.uint8], ends: Int64s, lengths: Int64s, dots: Int64s) -> Int64s | None:
    """Numbers with zero to three decimals each, as other writers leave them (`0.5`, `7`, `12.25`)."""
    starts = ends - lengths
    owner = np.searchsorted(ends, dots)
    decimals = np.zeros(len(ends), np.int64)
    decimals[owner] = ends[owner] - dots - 1
    if (np.diff(owner) == 0).any() or decimals.max() > 3 or (dots == starts[owner]).any():
        return None
    if (decimals[owner] == 0).any():
        return None
    return _scaled(characters[characters != _DOT].tobytes(), _FACTORS[decimals])


def _scaled(digits: bytes, factors: Int64s) -> Int64s | None:
    """Integers between spaces, times `factors`; None when a product could overflow."""
    values = np.fromstring(digits, np.int64, sep=" ")
    return None if (values > _LARGEST // factors).any() else values * factors


def _parse_one(token: bytes) -> int:
    try:
        value = Decimal(token.decode("ascii").strip().strip('"'))
        if not value.is_finite() or abs(value.adjusted()) > 20:
            return 0 if value == 0 else MISSING
        nanoseconds = int(value * 1000)
    except (InvalidOperation, ValueError):
        return MISSING
    return nanoseconds if -_LARGEST < nanoseconds < _LARGEST else MISSING
