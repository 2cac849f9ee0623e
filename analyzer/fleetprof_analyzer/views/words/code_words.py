"""A line of code in words, the same in the terminal and on the page.

Guarantees: one printable line of bounded length, whatever the training process called its files and functions.
"""

from typing import Final

from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.views.text import plain
from fleetprof_analyzer.words.code_places import name_code_place

_LONGEST: Final = 100


def name_place(place: PlaceInCode | None) -> str:
    """`train.py:41 read_batch`; empty where none is known."""
    return "" if place is None else plain(name_code_place(place), _LONGEST)


def in_brackets(place: PlaceInCode | None) -> str:
    """The same as an addition to a sentence: ` (train.py:41 read_batch)`."""
    location = name_place(place)
    return f" ({location})" if location else ""
