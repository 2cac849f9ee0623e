"""The tables of docs/request.md: every field with its rule, its default and its meaning."""

from collections.abc import Iterable
from typing import Final

from fleetprof_api.request import ProfileRequest, Status
from fleetprof_api.request.fields import FieldRow, list_fields

_PLACE: Final = "<!-- The fields of {}, made by crds/generate.py: {} -->\n"


def write_tables(page: str) -> str:
    """The page about requests, with its tables as the types are now."""
    page = _with_table(page, "a request", [row for row in list_fields(ProfileRequest) if row.path != "status"])
    return _with_table(page, "its status", list_fields(Status, "status."))


def _with_table(page: str, what: str, rows: Iterable[FieldRow]) -> str:
    before, begin, rest = page.partition(_PLACE.format(what, "begin"))
    _, end, after = rest.partition(_PLACE.format(what, "end"))
    assert begin, f"docs/request.md has lost the place of the table about {what}"
    assert end, f"docs/request.md has lost the end of the table about {what}"
    lines = ["| field | rule | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{row.path}` | {row.rule} | {row.default} | {row.meaning} |" for row in rows]
    table = "\n".join(lines)
    return f"{before}{begin}{table}\n{end}{after}"
