"""A user's word on kernels that the built-in table does not know: a pattern of their names, and their class.

Guarantees: a pattern is plain text with `*` for anything: matching takes no longer than looking for each of its pieces
once, whatever it says; the first pattern that fits counts. Rules of the fields: `fleetprof_api.request` (a request, or
a file).
"""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

MOST_KERNEL_CLASSES: Final = 64
MOST_PATTERN_CHARACTERS: Final = 200
# Printable ASCII, and something beside stars; RE2 and Python read it alike.
PATTERN: Final = "^[ -~]*[ -)+-~][ -~]*$"


class KernelClass(msgspec.Struct, kw_only=True, frozen=True):
    """One entry: kernels whose name contains the pattern are of this class."""

    pattern: Annotated[
        str,
        Meta(
            description="text that the name contains; * stands for any characters",
            min_length=1,
            max_length=MOST_PATTERN_CHARACTERS,
        ),
    ]
    work_class: Annotated[Literal["compute", "communication", "memory"], Meta(description="what such kernels are")]


def read_kernel_classes(entries: Iterable[tuple[str, str]]) -> list[KernelClass]:
    """Entries (pattern, class) from outside that hold the rules; others are left out, as if they fitted nothing."""
    found = []
    for pattern, work_class in entries:
        with contextlib.suppress(msgspec.ValidationError):
            found.append(msgspec.convert({"pattern": pattern, "work_class": work_class}, KernelClass))
    return found[:MOST_KERNEL_CLASSES]


def find_class(name: str, classes: Sequence[KernelClass]) -> KernelClass | None:
    """The first entry whose pattern a name contains; letters count as they are written."""
    return next((entry for entry in classes if contains(name, entry.pattern)), None)


def contains(name: str, pattern: str) -> bool:
    """Tells whether the pieces between the pattern's stars stand in the name, one behind the other."""
    at = 0
    for piece in pattern.split("*"):
        found = name.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True
