"""A type in the CRD's schema: each kind of field, its rules, and which of them may change."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from fleetprof_api.request.changes import MayChange, rules_of_changes
from fleetprof_api.request.part import Part
from fleetprof_api.request.patterns import DNS_LABEL, KIND
from fleetprof_api.request.rules import Rule, Unique, rule
from fleetprof_crds.structural_schema import make_schema
from pydantic import Field, ValidationError


class Colour(StrEnum):
    """For programmers."""

    RED = "Red"
    BLUE = "Blue"


class Inner(Part):
    """For programmers."""

    size: int = Field(default=3, ge=1, le=9, description="How large.")


class Everything(Part):
    """For users,
    in two lines.
    """

    needed: int = Field(ge=0, le=5)
    large: int | None = Field(default=None, ge=0, le=1 << 40)
    long: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int64"})
    flag: bool = False
    text: Annotated[str, DNS_LABEL] | None = Field(default=None, max_length=9)
    kind: Annotated[str, KIND] | None = None
    word: Literal["Yes", "No"] | None = None
    colour: Colour = Field(default=Colour.RED, description="Which colour.")
    at: datetime | None = None
    items: list[Colour] = Field(default=[], max_length=2)
    ranks: Annotated[list[int], Unique()] | None = Field(default=None, max_length=2)
    inner: Inner = Field(default=Inner(), description="What is inside.")
    inners: list[Inner] = Field(default=[])
    labels: (
        Annotated[dict[str, str], Rule("size(self) != 1", "must not be one", lambda labels: len(labels) != 1)] | None
    ) = None
    some_name: Annotated[int | None, MayChange("self.someName > 1", "someName must grow")] = None
    other_name: Annotated[int | None, MayChange()] = None

    @rule("!self.flag || self.needed > 0", "flag needs more than {0}", field="flag")
    def _flag_needs_some(self) -> bool:
        return not self.flag or self.needed > 0


INNER = {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "default": 3, "description": "How large."}
FIELDS: dict[str, dict[str, Any]] = {
    "needed": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 5},
    "large": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 1 << 40},
    "long": {"type": "integer", "format": "int64", "minimum": 0},
    "flag": {"type": "boolean", "default": False},
    "text": {"type": "string", "maxLength": 9, "pattern": DNS_LABEL.regex},
    "kind": {
        "type": "string",
        "x-kubernetes-validations": [{"rule": f"self.matches('{KIND.regex}')", "message": KIND.message}],
    },
    "word": {"type": "string", "enum": ["Yes", "No"]},
    "colour": {"type": "string", "enum": ["Red", "Blue"], "default": "Red", "description": "Which colour."},
    "at": {"type": "string", "format": "date-time", "maxLength": 35},
    "items": {
        "type": "array",
        "maxItems": 2,
        "x-kubernetes-list-type": "atomic",
        "items": {"type": "string", "enum": ["Red", "Blue"]},
    },
    "ranks": {
        "type": "array",
        "maxItems": 2,
        "x-kubernetes-list-type": "set",
        "items": {"type": "integer", "format": "int32"},
    },
    "inner": {"type": "object", "default": {}, "description": "What is inside.", "properties": {"size": INNER}},
    "inners": {
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {"type": "object", "properties": {"size": INNER}},
    },
    "labels": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "size(self) != 1", "message": "must not be one"}],
    },
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_described_as_the_api_server_takes_it(name: str) -> None:
    assert make_schema(Everything)["properties"][name] == FIELDS[name]


def test_an_object_has_its_docstring_its_required_fields_and_its_rules() -> None:
    schema = make_schema(Everything)
    del schema["properties"]
    assert schema == {
        "description": "For users, in two lines.",
        "type": "object",
        "required": ["needed"],
        "x-kubernetes-validations": [
            {"rule": "!self.flag || self.needed > 0", "message": "flag needs more than {0}", "fieldPath": ".flag"}
        ],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"flag": True, "needed": 0}, "flag needs more than {0}"),
        ({"labels": {"a": "b"}}, "must not be one"),
        ({"ranks": [1, 1]}, "must not name a value twice"),
    ],
)
def test_python_refuses_what_a_rule_refuses_in_its_words(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate({"needed": 1, **fields})
    assert [error["msg"] for error in caught.value.errors()] == [message]


def test_a_field_is_fixed_unless_it_says_otherwise() -> None:
    found = {each.message: (each.cel, each.field) for each in rules_of_changes(Everything, "spec")}
    fixed = "{} cannot be changed; create another ProfileRequest".format
    assert found[fixed("spec.needed")] == ("self.needed == oldSelf.needed", "needed")
    assert found[fixed("spec.flag")] == ("self.flag == oldSelf.flag", "flag")
    assert found[fixed("spec.word")] == (
        "has(self.word) == has(oldSelf.word) && (!has(self.word) || self.word == oldSelf.word)",
        "",
    )
    assert found["someName must grow"] == ("self.someName > 1", "someName")
    assert not any("otherName" in message for message in found)
