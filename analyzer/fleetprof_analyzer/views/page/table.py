"""Tables of the page: columns that say nothing are left out before they are drawn.

Guarantees: pure; a column is left out only where every cell of it is a dash, empty, or a plain zero.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from markupsafe import Markup

_NOTHING: Final = frozenset({"", "–", "0", "0 ns", "0 B", "0.0 %"})
Kind = Literal["name", "left", "number", "words"]


@dataclass(frozen=True, slots=True)
class Heading:
    """One column: its head, how it is set, and whether it stays though it says nothing."""

    head: str
    kind: Kind = "number"
    stays: bool = False


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows of cells under columns; a cell is text, which is escaped, or markup of our own."""

    columns: Sequence[Heading]
    rows: Sequence[Sequence[str | Markup]]


def make_table(columns: Sequence[Heading], rows: Iterable[Sequence[str | Markup]]) -> PageTable:
    """The table without columns that say nothing; the first column always stays."""
    listed = [list(row) for row in rows]
    kept = [
        number
        for number, column in enumerate(columns)
        if number == 0 or column.stays or any(row[number] not in _NOTHING for row in listed)
    ]
    return PageTable([columns[number] for number in kept], [[row[number] for number in kept] for row in listed])
