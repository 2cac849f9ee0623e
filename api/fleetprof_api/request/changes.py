"""The fields of a request that may change after its creation: those alone that say so in their annotation.

Guarantees: a new field is fixed unless somebody decides otherwise. Only the API server sees a request before and after
a change, so these rules are in CEL only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fleetprof_api.request.rules import Cel


@dataclass(frozen=True, slots=True)
class MayChange:
    """For the annotation of a field: it may change at any time, or where the CEL over `self` and `oldSelf` holds."""

    cel: str = ""
    message: str = ""


def rules_of_changes(part: type[BaseModel], path: str) -> Iterator[Cel]:
    """The API server's rule about the change of each field of the object at `path`."""
    for attribute, field in part.model_fields.items():
        name = field.alias or attribute
        if change := next((each for each in field.metadata if isinstance(each, MayChange)), None):
            if change.cel:
                yield Cel(change.cel, change.message, name)
            continue
        message = f"{path}.{name} cannot be changed; create another ProfileRequest"
        same = f"self.{name} == oldSelf.{name}"
        if _is_always_there(field):
            yield Cel(same, message, name)
        else:
            # In CEL it is an error to read a field that is not there.
            yield Cel(f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})", message)


def _is_always_there(field: FieldInfo) -> bool:
    """Required, or filled in by the API server: the CRD has every default but "nothing" and the empty list."""
    return field.is_required() or field.get_default() not in (None, [])
