"""Numbers in words: a unit with each, three digits; no control characters in a terminal."""

import pytest
from fleetprof_analyzer.words.text import plain
from fleetprof_api.quantities import amount, change, duration, rate, share, size


@pytest.mark.parametrize(
    ("nanoseconds", "words"),
    [(None, "–"), (0, "0 ns"), (999, "999 ns"), (1000, "1.00 µs"), (12_345, "12.3 µs"), (1_500_000, "1.50 ms"),
     (85_841_568, "85.8 ms"), (120_298_609, "120 ms"), (2_000_000_000, "2.00 s"), (90 * 10**9, "90.0 s"),
     (150 * 10**9, "2 min 30 s"), (7_320 * 10**9, "2 h 2 min"),
     (-20_110_027, "-20.1 ms")],
)  # fmt: skip
def test_durations(nanoseconds: int | None, words: str) -> None:
    assert duration(nanoseconds) == words


def test_sizes_shares_and_changes() -> None:
    assert (size(746_123), size(12), size(1), size(3.5e9)) == ("729 KiB", "12 bytes", "1 byte", "3.26 GiB")
    assert (rate(746_123), rate(12), rate(3.5e9)) == ("746 kB/s", "12 B/s", "3.50 GB/s")
    assert (amount(746_123, "ns"), amount(746_123, "mJ"), amount(12, "mJ"), amount(3_500_000_000, "mJ")) == (
        "746 µs", "746 J", "12 mJ", "3.50 MJ",
    )  # fmt: skip
    assert (amount(999, "mJ"), amount(12, "µJ"), amount(1234, "µJ"), amount(2_500_000, "µJ"), amount(0, "µJ")) == (
        "999 mJ", "12 µJ", "1.23 mJ", "2.50 J", "0 µJ",
    )  # fmt: skip
    assert (share(1, 8), share(0, 5), share(1, 0)) == ("12.5 %", "0.0 %", "–")
    assert (change(1.034), change(0.9), change(None)) == ("+3.4 %", "-10.0 %", "–")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("a\x1b[31mb", "a�[31mb"),
        ("a\nb", "a�b"),
        ("a\u202eb", "a�b"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_text_of_others_is_made_harmless(text: str, shown: str) -> None:
    assert plain(text) == shown
