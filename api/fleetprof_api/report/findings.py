"""The section `findings` of a report: what is worth doing, the most first.

Guarantees: part of `report.json` and its schema; a finding names the measure that it rests on.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.code_place import PlaceInCode

PartOfTime = Literal["idle", "host", "communication", "copies", "iterations", "cores", "ranks", "memory", "compute", ""]


class Example(msgspec.Struct, kw_only=True, frozen=True):
    """A place in time: a span on one rank, on the clock of its trace as `Iteration.start_ns` is."""

    rank: int
    start_ns: int
    duration_ns: Annotated[int, Meta(ge=0)]


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that costs the job time, with the evidence. Rules: docs/measures.md#findings."""

    kind: Annotated[str, Meta(description="for machines; the table of docs/measures.md")]
    message: Annotated[str, Meta(description="what it is, in one sentence")]
    advice: Annotated[str, Meta(description="what to try")] = ""
    gain_permille: Annotated[
        int, Meta(description="of the time of the devices (or iteration) that could be saved at most", ge=0)
    ] = 0
    measure: Annotated[str, Meta(description="field of the report that it rests on")] = ""
    value_ns: Annotated[int | None, Meta(description="its value, ns, summed over ranks")] = None
    ranks: Annotated[list[int], Meta(description="ranks where it is most, at most 8; empty: all alike")] = []
    names: Annotated[list[str], Meta(description="events that show it, at most 5")] = []
    part: Annotated[
        PartOfTime,
        Meta(
            description="of the time, what it is about: devices that are idle (host: because of their host), time that "
            "nothing hides, iterations, waits for a core, ranks that wait for each other, work of devices; memory: no "
            'time as long as there is some left; "": not said'
        ),
    ] = ""
    place: Annotated[PlaceInCode | None, Meta(description="line of code that most of it is at; null: not known")] = None
    example: Annotated[
        Example | None,
        Meta(
            description="where it is best seen: a gap of its cause, else the iteration with most of it; null: not known"
        ),
    ] = None
