"""A line of code in words, the same in the terminal and on the page.

Guarantees: one printable line of bounded length, whatever the training process called its files and functions.
"""

from typing import Final

from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.views.text import plain

_SAYS_NOTHING: Final = frozenset(("__init__.py", "__main__.py"))
_LONGEST: Final = 100


def name_place(place: PlaceInCode | None) -> str:
    """`train.py:41 read_batch`; empty where none is known."""
    if place is None:
        return ""
    parts = place.file.replace("\\", "/").split("/")
    file = "/".join(parts[-2:]) if parts[-1] in _SAYS_NOTHING else parts[-1]
    function = "" if place.function == "<module>" else f" {place.function}"
    return plain(f"{file}:{place.line}{function}", _LONGEST)


def in_brackets(place: PlaceInCode | None) -> str:
    """The same as an addition to a sentence: ` (train.py:41 read_batch)`."""
    location = name_place(place)
    return f" ({location})" if location else ""
