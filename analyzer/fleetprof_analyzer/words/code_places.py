"""A line of code in words: `train.py:41 read_batch`.

Guarantees: pure; as long as the names that the training process gave. Views bound it.
"""

from typing import Final

from fleetprof_api.report.code_place import PlaceInCode

_SAYS_NOTHING: Final = frozenset(("__init__.py", "__main__.py"))


def name_code_place(place: PlaceInCode) -> str:
    """The file's name, the line, and the function unless it is the module itself."""
    parts = place.file.replace("\\", "/").split("/")
    file = "/".join(parts[-2:]) if parts[-1] in _SAYS_NOTHING else parts[-1]
    function = "" if place.function in ("", "<module>") else f" {place.function}"
    return f"{file}:{place.line}{function}"
