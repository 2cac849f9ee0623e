"""The base of all parts of a ProfileRequest: camelCase names, no unknown fields, no conversions, rules."""

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from fleetprof_api.request.rules import Ruled


class Part(Ruled):
    """An object within a request."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True)
