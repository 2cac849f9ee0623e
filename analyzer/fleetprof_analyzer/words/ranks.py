"""Ranks in words: one, a few, or the first few of many; and ordinal numbers.

Guarantees: pure; at most eight numbers.
"""

from collections.abc import Sequence
from typing import Final

_MOST_NAMED: Final = 8


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 3 and 5`, `ranks 0, 1, 2 and 5 more`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) <= _MOST_NAMED:
        return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
    return f"ranks {some(ranks)}"


def some(values: Sequence[object]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(map(str, values[:_MOST_NAMED]))
    return f"{shown} and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else shown


def say_ordinal(number: int) -> str:
    """`1st`, `12th`, `22nd`."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
