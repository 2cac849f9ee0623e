"""The page of a kind about its fields: the rules between them, and each with its own rule and its meaning."""

from collections.abc import Iterable, Iterator
from typing import Final

from fleetprof_api.request.fields import FieldRow, list_fields
from fleetprof_api.request.rules import CEL, LIST_TYPE

from fleetprof_crds.kinds import CustomResourceKind
from fleetprof_crds.structural_schema import Schema

_PLACE: Final = "<!-- The {}, made by crds/generate.py: {} -->\n"


def write_page(page: str, kind: CustomResourceKind, schema: Schema) -> str:
    """The page about a kind, with its rules and tables as the types are now; `schema` is that of the CRD."""
    rules = [f"- `{path}`: {message}." for path, message in _list_rules(schema, "") if _is_here(path, kind)]
    page = _fill(page, f"rules of a {kind.noun}", rules)
    rows = [row for row in list_fields(kind.document) if row.path != "status" and _is_here(row.path, kind)]
    page = _fill(page, f"fields of a {kind.noun}", _make_table(rows))
    return _fill(page, "fields of its status", _make_table(list_fields(kind.status, "status.")))


def _is_here(path: str, kind: CustomResourceKind) -> bool:
    return not path.startswith(kind.elsewhere)


def _list_rules(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Path and sentence of each rule of a new request. The forms of texts are left to the table, which has them."""
    for rule in schema.get(CEL, []):
        if "oldSelf" not in rule["rule"] and not rule["rule"].startswith("self.matches("):
            field = f"{path}{rule.get('fieldPath', '')}".removeprefix(".")
            yield field, rule["message"].removeprefix(f"{field} ")
    if schema.get(LIST_TYPE) == "set":
        yield path, "must not name a value twice"
    for name, inner in schema.get("properties", {}).items():
        if path or name != "status":
            yield from _list_rules(inner, f"{path}.{name}".removeprefix("."))
    if "items" in schema:
        yield from _list_rules(schema["items"], f"{path}[]")


def _make_table(rows: Iterable[FieldRow]) -> list[str]:
    table = ["| field | rule | default | meaning |", "|---|---|---|---|"]
    return table + [f"| `{row.path}` | {row.rule} | {row.default} | {row.meaning} |" for row in rows]


def _fill(page: str, what: str, lines: list[str]) -> str:
    before, begin, rest = page.partition(_PLACE.format(what, "begin"))
    _, end, after = rest.partition(_PLACE.format(what, "end"))
    assert begin, f"the page has lost the place of the {what}"
    assert end, f"the page has lost the end of the {what}"
    return "\n".join([f"{before}{begin}{lines[0]}", *lines[1:], f"{end}{after}"])
