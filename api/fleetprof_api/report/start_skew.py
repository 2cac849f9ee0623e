"""The common begin of a capture's windows (docs/measures.md#start).

Guarantees: what cannot be told is null, never a guess.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class RankStart(msgspec.Struct, kw_only=True, frozen=True):
    """The begin of one rank's recording."""

    rank: int | None
    source: str
    start_ns: int
    first_step: int | None
    verified: Annotated[
        bool | None, Meta(description="the first recorded step is the asked one; null: cannot be told")
    ] = None


class StartSkew(msgspec.Struct, kw_only=True, frozen=True):
    """The common begin of the ranks' windows, as measured in the traces."""

    ranks: list[RankStart] = []
    spread_ns: Annotated[
        int | None,
        Meta(description="latest minus earliest start over ranks; null below two ranks with absolute time"),
    ] = None
    same_first_iteration: Annotated[bool | None, Meta(description="null: cannot be told")] = None
    verified_by: Annotated[
        Literal["agent_steps", "profiler_steps", "none"], Meta(description="what the verdict rests on")
    ] = "none"
    hosts: Annotated[int, Meta(description="number of hosts; above 1 the spread holds their clocks' offset")] = 0
