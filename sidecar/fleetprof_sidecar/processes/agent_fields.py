"""Fields of an agent's datagram, each read with its type, its length and its range.

Guarantees: raises nothing but ValueError, which names the field and the rule; texts come back as printable ASCII.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

MAX_TEXT: Final = 256
MAX_ROWS: Final = 4096
MOST_NAMED: Final = 1024  # places, and stacks, of one capture
INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1


def read_integer(fields: dict[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    """An integer of that range; `default` where there is none."""
    value = fields.get(name, default)
    if value is None:
        value = default
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name}: must be an integer from {low} to {high}")
    return value


def read_optional(fields: dict[str, Any], name: str) -> int | None:
    """An integer that may be missing."""
    return None if fields.get(name) is None else read_integer(fields, name, 0, INT32)


def read_text(fields: dict[str, Any], name: str) -> str:
    """A text, "" where there is none."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"{name}: must be text of at most {MAX_TEXT} characters")
    return "".join(character if " " <= character <= "~" else "?" for character in value)


def read_matching(fields: dict[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    """A text of that form, "" where there is none."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{name}: must match {pattern.pattern}")
    return value


def read_flags(fields: dict[str, Any], name: str) -> list[bool]:
    """A list of true and false."""
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > MAX_ROWS or any(type(one) is not bool for one in values):
        raise ValueError(f"{name}: must be a list of true and false, of at most {MAX_ROWS}")
    return values


def read_column(fields: dict[str, Any], name: str) -> list[int | None]:
    """A list of integers and nulls."""
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > MAX_ROWS:
        raise ValueError(f"{name}: must be a list of at most {MAX_ROWS} integers")
    for value in values:
        if value is not None and (type(value) is not int or not -INT64 <= value <= INT64):
            raise ValueError(f"{name}: must hold 64-bit integers or null")
    return values


def read_integers(fields: dict[str, Any], name: str, high: int = INT64) -> list[int]:
    """A list of integers of at least 0."""
    return read_numbers(name, fields.get(name), MAX_ROWS, high)


def read_numbers(name: str, values: Any, most: int, high: int) -> list[int]:
    """The same of a value that is in hand."""
    if not isinstance(values, list) or len(values) > most:
        raise ValueError(f"{name}: must be a list of at most {most} integers")
    if any(type(value) is not int or not 0 <= value <= high for value in values):
        raise ValueError(f"{name}: must hold integers from 0 to {high}")
    return values


def read_texts(fields: dict[str, Any], name: str) -> list[str]:
    """A list of texts."""
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > MOST_NAMED:
        raise ValueError(f"{name}: must be a list of at most {MOST_NAMED} texts")
    return [read_text({name: value}, name) for value in values]


def read_columns(kind: str, fields: dict[str, Any], types: Mapping[str, Any], high: int) -> dict[str, list[Any]]:
    """Columns of equal length by the type of what each holds.

    Integers are from 0 to `high`; those of a column with nulls may be any of 64 bits that is not negative.
    """
    columns: dict[str, list[Any]] = {}
    for name, what in types.items():
        if what is str:
            columns[name] = read_texts(fields, name)
        elif what is bool:
            columns[name] = read_flags(fields, name)
        elif what is int:
            columns[name] = read_integers(fields, name, high)
        else:
            columns[name] = read_column(fields, name)
            if any(value is not None and value < 0 for value in columns[name]):
                raise ValueError(f"{name}: must hold integers of at least 0")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"{kind}: all columns must be equally long")
    return columns
