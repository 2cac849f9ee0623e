"""Ranks in words: one, a few, or the first few of many; and ordinal numbers.

Guarantees: pure; at most eight numbers.
"""

from collections.abc import Sequence
from typing import Final

_MOST_NAMED: Final = 8


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 3 and 5`, `ranks 0, 1, 2 and 5 more`."""
    return name_numbers("rank", ranks)


def name_numbers(noun: str, numbers: Sequence[int]) -> str:
    """The same of other things that have numbers; `noun` is one of them."""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    if len(numbers) <= _MOST_NAMED:
        return f"{noun}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    return f"{noun}s {some(numbers)}"


def some(values: Sequence[object]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(map(str, values[:_MOST_NAMED]))
    return f"{shown} and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else shown


def say_ordinal(number: int) -> str:
    """`1st`, `12th`, `22nd`."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
