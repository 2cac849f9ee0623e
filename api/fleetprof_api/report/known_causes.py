"""Causes of lost time that practitioners know, as one rank's trace and samples prove them.

Guarantees: part of `report.json` and its schema; a cause is listed only with its evidence (docs/measures.md has them).
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.code_place import PlaceInCode

KnownCauseName = Literal["garbage_collection"]


class KnownCause(msgspec.Struct, kw_only=True, frozen=True):
    """One cause on one rank, over its iterations."""

    cause: KnownCauseName
    time_ns: Annotated[
        int, Meta(description="of the iterations (on a GPU while it is idle), that it takes at most", ge=0)
    ]
    count: Annotated[int, Meta(description="how often; the table says what is counted", ge=0)] = 0
    iterations: Annotated[int, Meta(description="in how many iterations it was seen", ge=0)] = 0
    longest_ns: Annotated[int, Meta(description="the longest one, ns", ge=0)] = 0
    place: Annotated[PlaceInCode | None, Meta(description="line of code that causes it; null: not known")] = None
