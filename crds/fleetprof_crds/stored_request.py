"""The part of a request that is read back from the store where there is no pydantic, as source text of msgspec's types.

Guarantees: names and types are those of a request's own types; nothing is checked twice, since the hub has stored what
it checked: every field has a default, and a word of a list of words is a text.
"""

import types
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from fleetprof_api.request import ProfileRequest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

# What is read of a type; the others are read whole.
_READ: Final = {
    "ProfileRequest": ("metadata", "spec"),
    "Metadata": ("name",),
    "Spec": ("target", "window", "collect", "traces", "analysis"),
    "Analysis": ("kernel_classes",),
}
_HEAD: Final = '''\
"""What the analyzer reads of a stored request. Made from fleetprof_api.request by crds/generate.py: change that one."""

import msgspec
'''
_EMPTY: Final = {"str": '""', "int": "0", "bool": "False"}


def write_stored_request() -> str:
    """The source text of `fleetprof_api.stored_request`."""
    classes: dict[str, str] = {}
    _add_class(ProfileRequest, classes)
    return "\n\n".join([_HEAD, *classes.values()])


def _add_class(model: type[BaseModel], classes: dict[str, str]) -> str:
    """Adds the class of a model behind those that it needs; its name."""
    name = model.__name__
    read = _READ.get(name, tuple(model.model_fields))
    lines = [_write_field(attribute, model.model_fields[attribute], classes) for attribute in read]
    head = f'class {name}(msgspec.Struct, rename="camel"):\n    """The part of {name} that is read."""\n'
    classes[name] = "\n".join([head, *lines, ""])
    return name


def _write_field(attribute: str, field: FieldInfo, classes: dict[str, str]) -> str:
    kind = _write_type(field.annotation, classes)
    default = _EMPTY.get(kind, "[]" if kind.startswith("list") else f"msgspec.field(default_factory={kind})")
    if kind.endswith("| None"):
        default = "None"
    alias = field.alias or attribute
    if alias != to_camel(attribute):
        default = f'msgspec.field(default={default}, name="{alias}")'
    return f"    {attribute}: {kind} = {default}"


def _write_type(annotation: Any, classes: dict[str, str]) -> str:
    inner = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            return _write_type(inner[0], classes)
        case origin if origin in (Union, types.UnionType):
            return " | ".join(_write_type(part, classes) for part in inner)
        case origin if origin is list:
            return f"list[{_write_type(inner[0], classes)}]"
        case origin if origin is dict:
            return f"dict[str, {_write_type(inner[1], classes)}]"
        case origin if origin is Literal:
            return "str"
    if annotation is type(None):
        return "None"
    if issubclass(annotation, BaseModel):
        return _add_class(annotation, classes)
    return "str" if issubclass(annotation, StrEnum) else str(annotation.__name__)
