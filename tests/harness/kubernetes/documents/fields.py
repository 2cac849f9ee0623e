"""A document with one field changed, for tests of what the API server and the typed Python take."""

import copy
from typing import Any


def with_field(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy of the document with the field at `path` set; None takes it away."""
    document = copy.deepcopy(document)
    place: Any = document
    *way, last = path.split(".")
    for part in way:
        place = place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document
