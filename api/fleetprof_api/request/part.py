"""What all parts of a ProfileRequest have in common: camelCase names, no unknown fields, no conversions."""

from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

# Each of these has its words in `fields.PATTERN_WORDS`.
DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


class Part(BaseModel):
    """An object within a request."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True)


def break_rule(message: str) -> PydanticCustomError:
    """The error of a rule between fields."""
    # The message goes through as a value, never as a template: it may hold braces.
    return PydanticCustomError("rule", "{text}", {"text": message})


def require_exactly_one(part: BaseModel, *names: str) -> None:
    """Raises the rule's error unless exactly one of these fields is set."""
    fields = type(part).model_fields
    given = sum(getattr(part, name) is not None for name in names)
    if given != 1:
        wanted = ", ".join(fields[name].alias or name for name in names)
        raise break_rule(f"exactly one of {wanted} must be set, got {given}")
