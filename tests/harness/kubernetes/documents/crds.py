"""Documents that a CRD's schema describes, right and slightly wrong, and the schema as plain JSON Schema."""

import re
from typing import Any, Final

from hypothesis import strategies as st

WRONG_TYPES: Final = st.sampled_from(["text", True, [], {}, 1.5, ["a"], {"a": "b"}])
LABEL: Final = st.sampled_from(["a", "app", "app.kubernetes.io/name", "A_b.c"])

# Strategies by their schema, which is kept so that no other gets its id: to make them takes longer than to draw.
_KEPT: Final[dict[tuple[int, int], tuple[dict[str, Any], st.SearchStrategy[Any]]]] = {}


def find_pattern(schema: dict[str, Any]) -> str | None:
    """The pattern of a string: its own, or that of a CEL rule which says it with a better message."""
    for rule in schema.get("x-kubernetes-validations", []):
        if found := re.fullmatch(r"self\.matches\('(.*)'\)", rule["rule"]):
            return found[1]
    pattern: str | None = schema.get("pattern")
    return pattern


def as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The structural part of a CRD's schema for a JSON Schema validator; unknown fields are refused (strict)."""
    plain = {k: v for k, v in schema.items() if not k.startswith("x-kubernetes") and k != "format"}
    if pattern := find_pattern(schema):
        # Python's `$` also matches in front of a last line's end.
        plain["pattern"] = pattern.removesuffix("$") + r"\Z"
    if "properties" in schema:
        plain["properties"] = {name: as_json_schema(inner) for name, inner in schema["properties"].items()}
        plain["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            plain[key] = as_json_schema(schema[key])
    return plain


def documents(schema: dict[str, Any], wrong_in_100: int = 2) -> st.SearchStrategy[Any]:
    """Documents that the schema allows, each part with a chance of being another. null and 1.0 are never among them."""
    if (kept := _KEPT.get((id(schema), wrong_in_100))) is not None:
        return kept[1]
    right = _right(schema, wrong_in_100)

    @st.composite
    def draw_one(draw: st.DrawFn) -> Any:
        if draw(st.integers(0, 99)) < wrong_in_100:
            return draw(WRONG_TYPES)
        return draw(right)

    _KEPT[id(schema), wrong_in_100] = (schema, draw_one())
    return _KEPT[id(schema), wrong_in_100][1]


def _right(schema: dict[str, Any], wrong: int) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) if not wrong else _mostly(schema["enum"], ["Other", ""], wrong)
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            low, high = schema["minimum"], schema.get("maximum", 1 << 31)
            return _mostly([low, low + 1, (low + high) // 2, high], [low - 1, high + 1], wrong)
        case "array":
            longest = min(schema["maxItems"], 4)
            return st.lists(documents(schema["items"], wrong), max_size=longest)
        case "object" if "additionalProperties" in schema:
            names = st.sampled_from(["cpu", "memory"]) if "quantity" in repr(schema) else LABEL
            return st.dictionaries(names, documents(schema["additionalProperties"], wrong), max_size=2)
        case "object":
            return _objects(schema, wrong)
        case None:
            return _mostly([0, 4, "500m", "2Gi", "1e3", ".5"], [-1, "much", "", "-1"], wrong)
    assert schema["type"] == "string"
    pattern = find_pattern(schema)
    if pattern is None:
        return st.text(max_size=4)
    right = st.from_regex(pattern.removesuffix("$") + r"\Z", fullmatch=True)
    right = right.filter(lambda text: len(text) <= schema["maxLength"])
    return st.one_of(right, st.text(max_size=3)) if wrong else right


def _objects(schema: dict[str, Any], wrong: int) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def draw_object(draw: st.DrawFn) -> dict[str, Any]:
        made = {}
        for name, inner in schema["properties"].items():
            required = name in schema.get("required", [])
            if draw(st.integers(0, 99)) < (100 - wrong if required else 40):
                made[name] = draw(documents(inner, wrong))
        if draw(st.integers(0, 99)) < wrong:
            made["unknown"] = draw(WRONG_TYPES)
        return made

    return draw_object()


def _mostly(right: list[Any], other: list[Any], wrong: int) -> st.SearchStrategy[Any]:
    return st.integers(0, 99).flatmap(lambda roll: st.sampled_from(other if roll < wrong else right))
