"""A line of code in words: `train.py:41 read_batch`.

Guarantees: pure; but for `name_code_place`, one printable line of bounded length, whatever the training process called
its files and functions.
"""

from typing import Final

from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.words.text import plain

_LONGEST: Final = 100
_SAYS_NOTHING: Final = frozenset(("__init__.py", "__main__.py"))


def name_code_place(place: PlaceInCode) -> str:
    """The file's name, the line, and the function unless it is the module itself."""
    parts = place.file.replace("\\", "/").split("/")
    file = "/".join(parts[-2:]) if parts[-1] in _SAYS_NOTHING else parts[-1]
    function = "" if place.function in ("", "<module>") else f" {place.function}"
    return f"{file}:{place.line}{function}"


def name_place(place: PlaceInCode | None) -> str:
    """`train.py:41 read_batch`; empty where none is known."""
    return "" if place is None else plain(name_code_place(place), _LONGEST)


def in_brackets(place: PlaceInCode | None) -> str:
    """The same as an addition to a sentence: ` (train.py:41 read_batch)`."""
    location = name_place(place)
    return f" ({location})" if location else ""
