"""Tables of one rank, and of the host's part in device work: memory, operators that launch. Formulas: docs/measures.md.

Guarantees: durations are integer nanoseconds, sizes integer bytes; what a trace does not say is null, never 0.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report_tables import Ns, WorkClassName

KnownCauseName = Literal[
    "repeated_reduction",
    "small_collectives",
    "few_cores",
    "garbage_collection",
    "compilation",
    "workers_started",
    "checkpoint",
    "evaluation",
    "logging",
    "unused_parameters",
]


class MemoryPeak(msgspec.Struct, kw_only=True, frozen=True):
    """The most memory that PyTorch's allocator of one device had given out, and had taken, while it was recorded."""

    device: Annotated[str, Meta(description="cuda:0, hip:0, cpu, …")]
    allocated_bytes: Annotated[int | None, Meta(description="largest Total Allocated; null where rows lack it")] = None
    allocated_at_ns: Annotated[int | None, Meta(description="when first so much, on the clock of start_ns")] = None
    reserved_bytes: Annotated[
        int | None, Meta(description="largest Total Reserved, free blocks included; null on the CPU, which keeps none")
    ] = None
    reserved_at_ns: Annotated[int | None, Meta(description="when first so much, on the clock of start_ns")] = None
    first_allocated_bytes: Annotated[int | None, Meta(description="Total Allocated of the first row")] = None
    events: Annotated[int, Meta(description="allocations and releases recorded", ge=0)] = 0


class MemoryGrowth(msgspec.Struct, kw_only=True, frozen=True):
    """Memory that grows from iteration to iteration: of the process before its recording, of a device within it."""

    of: Annotated[str, Meta(description="process, or a device by its allocator's words: cuda:0, cpu, …")]
    bytes_per_iteration: Annotated[int, Meta(description="mean growth", ge=0)]
    grown_steps: Annotated[int, Meta(description="steps to a later time in which it grew", ge=0)]
    steps: Annotated[int, Meta(description="all whose memory is known", ge=0)]
    first_bytes: Annotated[int, Meta(description="at the first time that is known", ge=0)]
    last_bytes: Annotated[int, Meta(description="at the last one", ge=0)]


class OperatorLaunches(msgspec.Struct, kw_only=True, frozen=True):
    """Device work that one operator of the host launched, over all ranks, itself and through operators inside it."""

    name: Annotated[str, Meta(description="(none): launched outside any operator; (other): all that is not listed")]
    calls: Annotated[int, Meta(description="times that it ran and something was launched in it", ge=0)] = 0
    own_launches: Annotated[
        int, Meta(description="rows of device work whose innermost operator it is; adds up to all of them", ge=0)
    ] = 0
    own_device_ns: Annotated[int, Meta(description="sum of their durations, ns", ge=0)] = 0
    launches: Annotated[int, Meta(description="rows launched in it, by itself or by operators inside it", ge=0)] = 0
    device_ns: Annotated[int, Meta(description="sum of their durations, ns", ge=0)] = 0
    ranks: Annotated[int, Meta(description="ranks that list it", ge=0)] = 0


class DeviceWorkStatistics(msgspec.Struct, kw_only=True, frozen=True):
    """Device work of one name, or of one class, on one rank."""

    name: Annotated[str, Meta(description="a kernel's name; (all) for all work of the class")]
    work_class: WorkClassName
    count: Annotated[int, Meta(description="rows", ge=0)]
    total_ns: Ns
    mean_ns: Ns
    min_ns: Ns
    max_ns: Ns
    deviation_ns: Annotated[int, Meta(description="standard deviation, ns", ge=0)]
    p25_ns: Annotated[int | None, Meta(description="quartile, to 1.6 %; null in older reports")] = None
    p50_ns: Annotated[int, Meta(description="median, to 1.6 %", ge=0)]
    p75_ns: Annotated[int | None, Meta(description="quartile, to 1.6 %; null in older reports")] = None
    p90_ns: Ns
    p99_ns: Ns
    density: Annotated[
        list[int],
        Meta(
            description="permille of the rows in 24 equal spans from min_ns to p99_ns; empty for classes, where these "
            "two are equal, and in older reports"
        ),
    ] = []


class KnownCause(msgspec.Struct, kw_only=True, frozen=True):
    """A cause of lost time that practitioners know, as the rank's trace or samples prove it, over its iterations."""

    cause: KnownCauseName
    time_ns: Annotated[
        int, Meta(description="of the iterations (on a GPU while it is idle), that it takes at most", ge=0)
    ]
    gain_permille: Annotated[
        int | None,
        Meta(description="of an iteration that is not recorded, over whole periods, that it takes; null: not told"),
    ] = None
    count: Annotated[int, Meta(description="how often; the table says what is counted", ge=0)] = 0
    of: Annotated[int, Meta(description="of how many; the table says of what", ge=0)] = 0
    iterations: Annotated[int, Meta(description="in how many iterations it was seen", ge=0)] = 0
    longest_ns: Annotated[int, Meta(description="the longest one, ns", ge=0)] = 0
    message_bytes: Annotated[int | None, Meta(description="mean size of the collectives; null: not recorded")] = None
    place: Annotated[PlaceInCode | None, Meta(description="line of code that causes it; null: not known")] = None
