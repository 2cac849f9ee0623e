"""A broken rule as a sentence: the field, what it must be, what was given."""

import re
from difflib import get_close_matches
from typing import Final

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from fleetprof_api.errors import FleetprofError
from fleetprof_api.request.fields import field_names, find_rule

# The kinds of pydantic's errors that a field's rule answers better than pydantic's own words.
_RULE_ANSWERS: Final = frozenset(
    {
        "bool_type",
        "dict_type",
        "enum",
        "greater_than_equal",
        "int_type",
        "less_than_equal",
        "list_type",
        "literal_error",
        "model_type",
        "string_pattern_mismatch",
        "string_too_long",
        "string_too_short",
        "string_type",
        "too_long",
        "too_short",
    }
)
_SHOWN: Final = 80


class InvalidRequest(FleetprofError, ValueError):
    """A request that breaks rules; `problems` holds one sentence per broken rule, each beginning with the field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def say_problem(model: type[BaseModel], error: ErrorDetails) -> str:
    """The sentence about one of pydantic's errors in a document of this model."""
    location = (*error["loc"], *_field_of_rule(error))
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    given = error["input"]
    rule = find_rule(model, location)
    match error["type"]:
        case "missing":
            problem = f"is required: {rule}" if rule else "is required"
        case "extra_forbidden":
            names = field_names(model, location[:-1])
            near = get_close_matches(str(location[-1]), names, 1)
            problem = "is not a field here; " + (f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names)}")
        case kind if kind in _RULE_ANSWERS and rule:
            shown = f", got {_show(given)}" if isinstance(given, str | int | float | bool | None) else ""
            problem = f"must be {rule}{shown}"
        case _:
            problem = re.sub(r"^Input should", "should", error["msg"]).removeprefix(f"{path} ")
    return f"{path or 'request'}: {problem}"[:600]


def _field_of_rule(error: ErrorDetails) -> list[str]:
    """The path in its object of the field that a rule is about."""
    field: str = error.get("ctx", {}).get("field", "") if error["type"] == "rule" else ""
    return field.split(".") if field else []


def _show(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
