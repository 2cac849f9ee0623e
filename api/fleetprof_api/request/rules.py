"""Rules that no bound of a field can say, each written once: Python's check beside the API server's CEL.

Guarantees: both refuse with the same message. The CEL goes into the CRD (crds/), and tests/crd runs the same documents
through both. A rule about one field stands in the field's annotation; a rule between fields is a method of the object
that holds them, marked with `rule`.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

CEL: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"

_Method = TypeVar("_Method", bound=Callable[[Any], bool])


@dataclass(frozen=True, slots=True)
class Cel:
    """The API server's check, with its message; `field` is the field within the object that the rule is about."""

    cel: str
    message: str
    field: str = ""

    def to_schema(self) -> dict[str, str]:
        """The rule as an entry of x-kubernetes-validations."""
        return {"rule": self.cel, "message": self.message} | ({"fieldPath": f".{self.field}"} if self.field else {})

    def breach(self) -> PydanticCustomError:
        """The same refusal as an error of pydantic."""
        # The message goes through as a value, never as a template: it may hold braces.
        return PydanticCustomError("rule", "{text}", {"text": self.message, "field": self.field})


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about the value of one field, for its annotation: `holds` tells what `cel` tells the API server."""

    cel: str
    message: str
    holds: Callable[[Any], bool]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return add_cel(handler(schema), [Cel(self.cel, self.message)])

    def _check(self, value: object) -> object:
        if not self.holds(value):
            raise Cel(self.cel, self.message).breach()
        return value


def rule(cel: str, message: str, field: str = "") -> Callable[[_Method], _Method]:
    """Marks a method as a rule between the fields of a part: it tells what `cel` tells the API server."""

    def mark(method: _Method) -> _Method:
        method.__cel__ = Cel(cel, message, field)  # type: ignore[attr-defined]
        return method

    return mark


class Ruled(BaseModel):
    """An object whose rules between fields are methods, marked with `rule`; they are checked in their order."""

    @classmethod
    def cel_rules(cls) -> Sequence[Cel]:
        """The rules of this object as the API server has them."""
        return [method.__cel__ for method in _rules_of(cls)]

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        for method in _rules_of(type(self)):
            if not method(self):
                raise method.__cel__.breach()
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        add_cel(handler.resolve_ref_schema(made), cls.cel_rules())
        return made


class Unique:
    """For the annotation of a list: no value stands in it twice. For the API server it is a set."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(_refuse_repetition, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), LIST_TYPE: "set"}


def add_cel(schema: JsonSchemaValue, rules: Sequence[Cel]) -> JsonSchemaValue:
    """The schema with these rules of the API server."""
    if rules:
        schema.setdefault(CEL, []).extend(each.to_schema() for each in rules)
    return schema


def _rules_of(part: type[BaseModel]) -> list[Any]:
    """The rules, those of the bases first; a rule of the same name takes the place of theirs."""
    found = {name: value for each in reversed(part.__mro__) for name, value in vars(each).items()}
    return [value for value in found.values() if isinstance(getattr(value, "__cel__", None), Cel)]


def _refuse_repetition(items: list[Hashable]) -> list[Hashable]:
    if len(set(items)) != len(items):
        raise PydanticCustomError("rule", "must not name a value twice")
    return items
