"""The filters of a person, as conditions of a statement.

Guarantees: values are bound, never part of a statement; what a person may not read is left out before anything is
counted; a text is looked for as it is, without patterns.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, false, func, literal, or_, select, union_all
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


@dataclass(frozen=True, slots=True)
class Facets:
    """The number of rows by value, by the name of the facet, and how many rows there are."""

    values: dict[str, list[FacetValue]]
    total: int


@dataclass(frozen=True, slots=True)
class ManyValued:
    """A facet of which a row may have several values: a table of its own, with the row's id and the value."""

    name: str
    row_id: Column[int]
    value: Column[str]


def count_facets(
    connection: Connection,
    table: FromClause,
    columns: Mapping[str, str],
    base: Conditions,
    own: Conditions,
    many: ManyValued | None = None,
) -> Facets:
    """The facets of a table, in one statement: each counts the rows that all conditions but its own let through.

    `columns` has the column of each facet, `base` the conditions that are no facet's, `own` those that are one's.
    """
    # What is dear to look for, a text above all, is looked for once.
    marks = {name: condition.label(f"is_{name}") for name, condition in own.items()}
    ids = [table.c.id] if many is not None else []
    found = select(*ids, *(table.c[column] for column in columns.values()), *marks.values()).where(*base.values())
    rows = found.cte("found") if base or own else table
    kept = {name: rows.c[f"is_{name}"] for name in own}
    parts = [
        select(literal(name).label("facet"), rows.c[column].label("value"), func.count().label("number"))
        .where(rows.c[column] != "", *(mark for other, mark in kept.items() if other != name))
        .group_by(rows.c[column])
        for name, column in columns.items()
    ]
    if many is not None:
        among = rows if base or own else None
        parts.append(_count_many(many, among, [mark for other, mark in kept.items() if other != many.name]))
    total = select(literal(""), literal(""), func.count()).select_from(rows).where(*kept.values())
    values: dict[str, list[FacetValue]] = {name: [] for name in (*columns, *([many.name] if many else []))}
    count = 0
    for row in connection.execute(union_all(*parts, total)):
        if row.facet:
            values[row.facet].append(FacetValue(value=row.value, count=row.number))
        else:
            count = row.number
    return Facets({name: most_frequent(each) for name, each in values.items()}, count)


def most_frequent(values: Sequence[FacetValue]) -> list[FacetValue]:
    """As many as are shown, the most frequent first."""
    return sorted(values, key=lambda one: (-one.count, one.value))[:_MOST_FACETS]


def _count_many(many: ManyValued, rows: FromClause | None, marks: Sequence[ColumnElement[bool]]) -> Any:
    """The most frequent values alone: many are of one row, such as names. `rows` None: of all rows, by an index."""
    table = many.value.table
    number = func.count().label("number")
    counted = (
        select(many.value.label("value"), number)
        .select_from(table if rows is None else rows.join(table, many.row_id == rows.c.id))
        .where(*marks)
        .group_by(many.value)
        .order_by(number.desc(), many.value)
        .limit(_MOST_FACETS)
        .subquery()
    )
    return select(literal(many.name).label("facet"), counted.c.value, counted.c.number)
