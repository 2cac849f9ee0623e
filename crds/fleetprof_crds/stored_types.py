"""The parts of requests and policies that are read back from the store, as source text of msgspec's types.

Guarantees: names and types are those of the kinds' own types; nothing is checked twice, since what is stored was
checked: every field has a default, and a word of a list of words, or a time, is a text.
"""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from fleetprof_api.policy import PolicyStatus
from fleetprof_api.request import ProfileRequest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class StoredKind:
    """A module of such types: of `model`, with the fields `read` of a type (all of the others), and those `added`.

    Where `is_flat`, what is absent is stored as empty, and is no None.
    """

    model: type[BaseModel]
    head: str
    read: Mapping[str, Sequence[str]]
    added: Mapping[str, str]
    is_flat: bool = False


STORED_REQUEST: Final = StoredKind(
    ProfileRequest,
    "The read parts of a stored request. Made from fleetprof_api.request by crds/generate.py: change that one.",
    {
        "ProfileRequest": ("metadata", "spec"),
        "Metadata": ("name",),
        "Spec": ("target", "window", "capture", "iteration", "collect", "traces", "analysis"),
        "Analysis": ("kernel_classes",),
    },
    {},
)
STORED_POLICY_STATUS: Final = StoredKind(
    PolicyStatus,
    "The stored status of a policy. Made from fleetprof_api.policy.status by crds/generate.py: change that one.",
    {
        "PolicyStatus": (
            "fired",
            "captured",
            "suppressed",
            "last_fired_time",
            "captures",
            "suppressions",
            "conditions",
        ),
        "PolicyCapture": (
            "request",
            "workload",
            "trigger",
            "cause",
            "fired_time",
            "mode",
            "completion_time",
            "result",
            "headline",
        ),
        "Condition": ("type", "status", "reason", "message"),
    },
    {"PolicyCapture": '    uid: str = ""  # of the request, once it is made'},
    is_flat=True,
)
_EMPTY: Final = {"str": '""', "int": "0", "bool": "False"}


def write_stored(kind: StoredKind) -> str:
    """The source text of a module of stored types."""
    classes: dict[str, str] = {}
    _add_class(kind, kind.model, classes)
    return "\n\n".join([f'"""{kind.head}"""\n\nimport msgspec\n', *classes.values()])


def _add_class(kind: StoredKind, model: type[BaseModel], classes: dict[str, str]) -> str:
    """Adds the class of a model behind those that it needs; its name."""
    name = model.__name__
    read = kind.read.get(name, tuple(model.model_fields))
    lines = [_write_field(kind, attribute, model.model_fields[attribute], classes) for attribute in read]
    lines += [kind.added[name]] if name in kind.added else []
    head = f'class {name}(msgspec.Struct, rename="camel"):\n    """The part of {name} that is read."""\n'
    classes[name] = "\n".join([head, *lines, ""])
    return name


def _write_field(kind: StoredKind, attribute: str, field: FieldInfo, classes: dict[str, str]) -> str:
    written = _write_type(kind, field.annotation, classes)
    default = _EMPTY.get(written, "[]" if written.startswith("list") else f"msgspec.field(default_factory={written})")
    if written.endswith("| None"):
        default = "None"
    if kind.is_flat and isinstance(field.default, StrEnum):
        default = f'"{field.default.value}"'
    alias = field.alias or attribute
    if alias != to_camel(attribute):
        default = f'msgspec.field(default={default}, name="{alias}")'
    return f"    {attribute}: {written} = {default}"


def _write_type(kind: StoredKind, annotation: Any, classes: dict[str, str]) -> str:
    inner = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            return _write_type(kind, inner[0], classes)
        case origin if origin in (Union, types.UnionType):
            parts = [part for part in inner if not (kind.is_flat and part is type(None))]
            return " | ".join(_write_type(kind, part, classes) for part in parts)
        case origin if origin is list:
            return f"list[{_write_type(kind, inner[0], classes)}]"
        case origin if origin is dict:
            return f"dict[str, {_write_type(kind, inner[1], classes)}]"
        case origin if origin is Literal:
            return "str"
    if annotation is type(None):
        return "None"
    if issubclass(annotation, BaseModel):
        return _add_class(kind, annotation, classes)
    return "str" if issubclass(annotation, StrEnum | datetime) else str(annotation.__name__)
