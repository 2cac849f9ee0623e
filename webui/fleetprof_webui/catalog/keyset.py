"""Pages of a list by keyset: a page begins behind the last row of the one before, wherever that is by now.

Guarantees: a page costs the same however far it is; a cursor that somebody made up is refused, and can name no column.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

import msgspec
from sqlalchemy import Row, Select, Table, and_, or_

from fleetprof_webui.problems import RequestRefused

_MOST_CURSOR: Final = 1024


class _Cursor(msgspec.Struct, array_like=True):
    sort: str
    value: int | str
    row_id: int


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order of a list: by one column, then by id."""

    sort: str
    column: str
    descending: bool

    @classmethod
    def parse(cls, sort: str, offered: Mapping[str, str]) -> Self:
        """`busy` ascending, `-busy` descending. Raises RequestRefused with what is offered."""
        name = sort.removeprefix("-")
        if name not in offered:
            raise RequestRefused(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"sort {name!r} is not offered",
                f"sort by one of {', '.join(offered)}, with - before it for descending",
                fields=["sort"],
            )
        return cls(sort, offered[name], sort.startswith("-"))

    def page(self, statement: Select[Any], table: Table, after: str, limit: int) -> Select[Any]:
        """The statement sorted, cut to one row more than `limit`, behind the cursor `after` ("": from the first)."""
        column, row_id = table.c[self.column], table.c.id
        if after:
            cursor = self._read(after, str if column.type.python_type is str else int)
            further = column < cursor.value if self.descending else column > cursor.value
            further_id = row_id < cursor.row_id if self.descending else row_id > cursor.row_id
            statement = statement.where(or_(further, and_(column == cursor.value, further_id)))
        ordered = (column.desc(), row_id.desc()) if self.descending else (column.asc(), row_id.asc())
        return statement.order_by(*ordered).limit(limit + 1)

    def cursor(self, row: Row[Any], row_id: int) -> str:
        """The cursor that leads behind this row."""
        packed = msgspec.json.encode(_Cursor(self.sort, getattr(row, self.column), row_id))
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    def _read(self, after: str, kind: type) -> _Cursor:
        try:
            packed = base64.urlsafe_b64decode(after[:_MOST_CURSOR] + "=" * (-len(after) % 4))
            cursor = msgspec.json.decode(packed, type=_Cursor)
        except (ValueError, msgspec.MsgspecError):
            cursor = _Cursor("", 0, 0)
        numbers = [cursor.row_id, *([cursor.value] if isinstance(cursor.value, int) else [])]
        if cursor.sort != self.sort or type(cursor.value) is not kind or any(abs(n) >= 1 << 63 for n in numbers):
            raise RequestRefused(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "`after` is not of this list and this order",
                "begin again without it",
                fields=["after"],
            )
        return cursor
