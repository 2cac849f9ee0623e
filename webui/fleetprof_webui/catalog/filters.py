"""What a person looks for, as conditions of a statement.

Guarantees: values are bound, never part of a statement; what a person may not read is left out before anything is
counted; a text is looked for as it is, without patterns.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, false, func, or_, select
from sqlalchemy.sql import FromClause

from fleetprof_webui.models.fleet import FacetValue

_MOST_FACETS: Final = 50

Conditions = Mapping[str, ColumnElement[bool]]
"""Conditions by the name of their parameter, so that a facet can leave out its own."""


def permitted(column: Column[str], namespaces: Collection[str] | None) -> ColumnElement[bool] | None:
    """Rows of these namespaces only; None: all are permitted."""
    if namespaces is None:
        return None
    return column.in_(sorted(namespaces)) if namespaces else false()


def contains(text: str, *columns: Column[str]) -> ColumnElement[bool]:
    """One of the columns holds this text, upper or lower case."""
    return or_(*(func.lower(column).contains(text.lower(), autoescape=True) for column in columns))


def find_facet(
    connection: Connection, source: FromClause, column: ColumnElement[str], conditions: Conditions, own: str
) -> list[FacetValue]:
    """How many rows have each value of a column, of those that all conditions but its own let through."""
    count = func.count().label("count")
    statement = (
        select(column.label("value"), count)
        .select_from(source)
        .where(column != "", *(condition for name, condition in conditions.items() if name != own))
        .group_by(column)
        .order_by(count.desc(), column)
        .limit(_MOST_FACETS)
    )
    return [FacetValue(value=row.value, count=row._mapping["count"]) for row in connection.execute(statement)]


def count_rows(connection: Connection, source: FromClause, conditions: Conditions) -> int:
    """How many rows all conditions let through."""
    statement: Any = select(func.count()).select_from(source).where(*conditions.values())
    return int(connection.execute(statement).scalar_one())
