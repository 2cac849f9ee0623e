"""The slices of ranks: their measures by columns, who holds the others up, and measures by iteration."""

from typing import Annotated

from msgspec import Meta

from fleetprof_api.report.heterogeneity import Heterogeneity
from fleetprof_api.report.stragglers import Stragglers
from fleetprof_api.slices.slice import Slice


class RankSlice(Slice):
    """All ranks by columns: equal indices are one rank. Formulas: docs/measures.md."""

    rank: list[int | None]
    source: list[str]
    kind: list[str]
    host_name: list[str]
    device_name: list[str]
    iteration_count: list[int]
    measures: Annotated[
        dict[str, list[int | None]],
        Meta(
            description="by name: span, compute, overlapped_communication, exposed_communication, exposed_memory, "
            "idle, unrecorded, idle_*, stage_*, iteration (median), data_loading, lateness in ns; energy in mJ; memory "
            "in bytes; launches. A measure that no rank has is left out."
        ),
    ]
    units: Annotated[dict[str, str], Meta(description="ns, mJ, µJ, bytes or count, by measure")]


class StragglerSlice(Slice):
    """The report's section on who is late, with its sentences; null where there is none."""

    sentence: Annotated[str, Meta(description="the verdict in words, as the terminal has it")]
    hosts: Annotated[list[str], Meta(description="a sentence on each host that is late as a whole")]
    notes: list[str]
    found: Stragglers | None


class IterationSlice(Slice):
    """The ranks of each kind: `tables[].values[i][j]` is that of `ranks[i]` in `iterations[j]`."""

    sections: list[Heterogeneity]
