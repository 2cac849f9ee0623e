"""Bounds and rules in the words of a field's description: `kubectl explain` shows descriptions, and no bound.

Guarantees: the words are those of the page about the kind, so that a rule is written down once.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fleetprof_api.request.fields import FieldRow
from fleetprof_api.request.rules import CEL

Schema = dict[str, Any]

# What kubectl says itself, of maps and of switches.
_SAID: Final = ("a mapping", "true or false")


def add_rules(schema: Schema, rows: Iterable[FieldRow]) -> None:
    """Puts what each field of a new object must be behind its description."""
    for row in rows:
        field = _find(schema, row.path)
        if field is not None and "description" in field:
            field["description"] = " ".join([field["description"], *_sentences(row, field)])


def _sentences(row: FieldRow, field: Schema) -> Iterator[str]:
    if row.rule and not row.rule.startswith(_SAID):
        yield f"Must be {row.rule}."
    if row.default and row.default != "required" and not row.rule.startswith("a mapping"):
        yield f"Default: {row.default}."
    for rule in field.get(CEL, []):
        if "oldSelf" not in rule["rule"] and not rule["rule"].startswith("self.matches("):
            message = rule["message"].removeprefix(f"{row.path} ")
            # A field's name is written as it is.
            yield f"{message}." if message.startswith("spec.") else f"{message[0].upper()}{message[1:]}."


def _find(schema: Schema, path: str) -> Schema | None:
    for part in path.split("."):
        schema = schema.get("properties", {}).get(part.removesuffix("[]"), {})
        if part.endswith("[]"):
            schema = schema.get("items", {})
    return schema or None
