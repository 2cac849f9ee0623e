"""The fields of a ProfileRequest in words: what an error says of them is what docs/request.md says of them.

Guarantees: read from the types of the request themselves, so that a rule is written down once.
"""

import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fleetprof_api.request.patterns import Pattern


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field: its path from the top, its rule, its default (empty: none), what it is for."""

    path: str
    rule: str
    default: str
    meaning: str


def list_fields(model: type[BaseModel], prefix: str = "") -> Iterator[FieldRow]:
    """All fields below a model, in the order of the types, each parent before its children."""
    for name, field in _fields(model).items():
        path = f"{prefix}{name}"
        yield FieldRow(path, describe_rule(field.annotation, field.metadata), _default(field), field.description or "")
        inner, suffix = _model_within(field.annotation)
        if inner is not None:
            yield from list_fields(inner, f"{path}{suffix}.")


def longest(model: type[BaseModel], attribute: str) -> int:
    """The most characters, or items, that a field may have. Raises ValueError where its type has no such bound."""
    field = model.model_fields[attribute]
    _, inner = _unwrap(field.annotation)
    most = _Limits.read([*field.metadata, *inner]).longest
    if most is None:
        raise ValueError(f"{model.__name__}.{attribute} has no bound")
    return most


def find_rule(model: type[BaseModel], location: Sequence[str | int]) -> str:
    """The rule of the field at an error's location, empty when the location names none."""
    annotation: Any = model
    metadata: Iterable[Any] = ()
    for part in location:
        annotation, inner = _unwrap(annotation)
        metadata = inner
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = _fields(annotation).get(str(part))
            if field is None:
                return ""
            annotation, metadata = field.annotation, field.metadata
        elif get_origin(annotation) in (list, dict):
            annotation, metadata = get_args(annotation)[-1], ()
        else:
            return ""
    return describe_rule(annotation, metadata)


def field_names(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The names that the object at a location may hold, empty when it is no object with fixed names."""
    annotation: Any = model
    for part in location:
        annotation, _ = _unwrap(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and str(part) in _fields(annotation):
            annotation = _fields(annotation)[str(part)].annotation
        elif get_origin(annotation) in (list, dict):
            annotation = get_args(annotation)[-1]
        else:
            return []
    annotation, _ = _unwrap(annotation)
    return list(_fields(annotation)) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def describe_rule(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """The rule of a value, in words that follow "must be"."""
    annotation, inner = _unwrap(annotation)
    limits = _Limits.read([*metadata, *inner])
    origin = get_origin(annotation)
    if origin is Literal:
        return _one_of(get_args(annotation))
    if origin is list:
        return f"a list{limits.count('items')}, each {describe_rule(get_args(annotation)[0])}"
    if origin is dict:
        return f"a mapping{limits.count('entries')}"
    if annotation is bool:
        return "true or false"
    if annotation is datetime:
        return "a time, e.g. 2026-11-21T09:45:12Z"
    if annotation is int:
        return f"a whole number{limits.range()}"
    if annotation is str:
        return f"a text{limits.count('characters')}{limits.words and f' {limits.words}'}"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return _one_of([member.value for member in annotation])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a mapping with the fields " + ", ".join(_fields(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(describe_rule(part) for part in get_args(annotation))
    return "any value"


def _one_of(values: Iterable[Any]) -> str:
    *most, last = [str(value) for value in values]
    return f"{', '.join(most)} or {last}" if most else last


@dataclass(frozen=True, slots=True)
class _Limits:
    low: int | None = None
    high: int | None = None
    shortest: int | None = None
    longest: int | None = None
    words: str = ""

    @classmethod
    def read(cls, metadata: Iterable[Any]) -> "_Limits":
        found: dict[str, Any] = {}
        for item in metadata:
            for part in item.metadata if isinstance(item, FieldInfo) else [item]:
                match part:
                    case annotated_types.Ge():
                        found["low"] = part.ge
                    case annotated_types.Le():
                        found["high"] = part.le
                    case annotated_types.MinLen():
                        found["shortest"] = part.min_length
                    case annotated_types.MaxLen():
                        found["longest"] = part.max_length
                    case Pattern():
                        found["words"] = part.words
        return cls(**found)

    def range(self) -> str:
        if self.low is not None and self.high is not None:
            return f" from {self.low} to {self.high}"
        return f" of at least {self.low}" if self.low is not None else ""

    def count(self, things: str) -> str:
        if self.longest is None:
            return ""
        return (
            f" of {self.shortest} to {self.longest} {things}"
            if self.shortest
            else f" of at most {self.longest} {things}"
        )


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Without `| None` and Annotated; what Annotated held."""
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            metadata += tuple(more)
            continue
        if get_origin(annotation) in (Union, types.UnionType):
            parts = [part for part in get_args(annotation) if part is not type(None)]
            if len(parts) == 1:
                annotation = parts[0]
                continue
        return annotation, metadata


def _model_within(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    annotation, _ = _unwrap(annotation)
    if get_origin(annotation) is list:
        inner, _ = _model_within(get_args(annotation)[0])
        return inner, "[]"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    return None, ""


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """A model's fields by the name that a user writes."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    return ""
