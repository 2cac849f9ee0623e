"""The structural schema of a CRD, from pydantic's JSON Schema of a type.

Guarantees: what the type knows is in it: types, bounds, values, defaults, words, and the CEL that stands beside the
rules of Python. The API server's restrictions are kept: no references, no null, no closed objects.
"""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

Schema = dict[str, Any]

_LARGEST_INT32: Final = (1 << 31) - 1
_TIME_CHARACTERS: Final = 35  # RFC 3339 with nanoseconds and an offset; a bound keeps the cost of rules in reckoning
_INNER: Final = ("properties", "items", "additionalProperties")


class _InOrder(GenerateJsonSchema):
    """pydantic's schema, with its keys as they were written."""

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value


def make_schema(model: type[BaseModel]) -> Schema:
    """The schema of a model's objects, described by the model's docstring."""
    document = model.model_json_schema(by_alias=True, schema_generator=_InOrder)
    schema = _convert(document, document.get("$defs", {}))
    schema["description"] = " ".join(schema["description"].split())
    return schema


def _convert(node: Schema, types: dict[str, Schema]) -> Schema:
    made = _resolve(node, types) | {"description": node.get("description"), "default": _default(node)}
    match made.get("type"):
        case "integer":
            made.setdefault("format", "int64" if made.get("maximum", 0) > _LARGEST_INT32 else "int32")
        case "array":
            made.setdefault("x-kubernetes-list-type", "atomic")
        case "string" if made.get("format") == "date-time":
            made["maxLength"] = _TIME_CHARACTERS
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _convert(made[key], types)
    if "properties" in made:
        made["properties"] = {name: _convert_field(field, types) for name, field in made["properties"].items()}
    if made.get("additionalProperties") is False:
        del made["additionalProperties"]
    kept = {name: value for name, value in made.items() if name not in ("title", "$defs") and value is not None}
    return dict(sorted(kept.items(), key=_place))


def _convert_field(field: Schema, types: dict[str, Schema]) -> Schema:
    # pydantic leaves out the description of a field that is the docstring of its type.
    return _convert({**field, "description": _resolve(field, types).get("description")}, types)


def _resolve(node: Schema, types: dict[str, Schema]) -> Schema:
    """The node with its type in place of a reference to it, and without null."""
    match node:
        case {"$ref": reference, **beside}:
            return _resolve(types[reference.rpartition("/")[2]], types) | beside
        case {"anyOf": [inner, {"type": "null"}], **beside}:
            return _resolve(inner, types) | beside
    return node


def _default(node: Schema) -> Any:
    """The API server's default: nothing for an empty list, {} for an object, whose fields have their defaults."""
    match node.get("default"):
        case []:
            return None
        case dict():
            return {}
        case value:
            return value


def _place(item: tuple[str, Any]) -> tuple[int, int]:
    """Words and type first, then bounds, rules, and at last what is within."""
    name = item[0]
    first = ("description", "type", "format", "required")
    if name in first:
        return 0, first.index(name)
    return (3 if name in _INNER else 2 if name.startswith("x-") else 1), 0
