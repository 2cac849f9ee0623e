"""Time and memory by module of the model, from the iteration in which modules were marked (`collect: [ModuleTree]`).

Guarantees: durations are integer nanoseconds, sizes integer bytes; what nobody told is null, never 0; no time is in two
modules but through one inside the other. Formulas: docs/measures.md#modules.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from fleetprof_api.report.efficiency import Roof
from fleetprof_api.report.findings import Example
from fleetprof_api.report.report_tables import Ns

MOST_NODES: Final = 256
"""So many nodes keep a tree below a fifth of the 100 KB of a rank's summary."""


class ModuleTimes(msgspec.Struct, kw_only=True, frozen=True):
    """Work of one part of an iteration, with that of modules inside."""

    host_ns: Annotated[int, Meta(description="operators on the host, each without those inside it, ns", ge=0)] = 0
    device_ns: Annotated[int, Meta(description="sum of the device work that was launched there, ns", ge=0)] = 0
    launches: Annotated[int, Meta(description="rows of that device work", ge=0)] = 0
    operators: Annotated[int, Meta(description="operators, also those that others called", ge=0)] = 0
    flops: Annotated[
        int, Meta(description="floating-point operations that shapes tell (`collect: [Shapes]`)", ge=0)
    ] = 0
    moved_bytes: Annotated[
        int, Meta(description="bytes that operators read and write at least, so far as shapes tell", ge=0)
    ] = 0


class ModuleNode(msgspec.Struct, kw_only=True, frozen=True):
    """One module in the modules that call it. `depth` 0 is a root; what is inside a node follows it."""

    name: Annotated[str, Meta(description="dotted, behind the class of its root")]
    depth: Annotated[int, Meta(description="modules around it", ge=0)] = 0
    class_name: Annotated[str, Meta(description="empty: not known")] = ""
    calls: Annotated[int, Meta(description="times that its forward ran, without recomputation", ge=0)] = 0
    elapsed_ns: Annotated[int, Meta(description="from begin to end of these, with Python and waits, ns", ge=0)] = 0
    forward: ModuleTimes = ModuleTimes()
    backward: ModuleTimes = ModuleTimes()
    recompute: Annotated[ModuleTimes, Meta(description="forward again within backward")] = ModuleTimes()
    own: Annotated[ModuleTimes, Meta(description="all three without modules inside")] = ModuleTimes()
    measured_iterations: Annotated[
        int,
        Meta(description="whose median its times are; 0: they are of the marked iteration, and hold its cost", ge=0),
    ] = 0
    roof_permille: Annotated[
        int | None, Meta(description="least time by the device's peaks, over its time; null: peaks or shapes not known")
    ] = None
    roof: Annotated[Roof, Meta(description="the peak that bounds it: its side of the ridge; empty: not known")] = ""
    parameter_bytes: Annotated[int | None, Meta(description="its own on one rank, without modules inside")] = None
    gradient_bytes: Annotated[int | None, Meta(description="of these, at the end of the optimizer's step")] = None
    optimizer_bytes: Annotated[int | None, Meta(description="the optimizer's state for these")] = None
    saved_bytes: Annotated[
        int | None, Meta(description="its own tensors for backward, without modules inside, in its largest forward")
    ] = None
    output_bytes: Annotated[int | None, Meta(description="what its calls returned")] = None
    file: Annotated[str, Meta(description="of its class's forward")] = ""
    line: Annotated[int, Meta(description="of its class's forward; 0: not known")] = 0
    call_file: Annotated[str, Meta(description="of the line of the job that called it first")] = ""
    call_line: Annotated[int, Meta(description="0: not known")] = 0
    example: Annotated[
        Example | None, Meta(description="its forward in the last measured iteration whose operators are known")
    ] = None
    ranks: Annotated[int, Meta(description="that have it; the times are their means", ge=0)] = 1
    slowest_rank: Annotated[int | None, Meta(description="where its work took longest; null: one rank")] = None
    slowest_ns: Annotated[Ns | None, Meta(description="device time there, host time where there is no device")] = None


class HeldBytes(msgspec.Struct, kw_only=True, frozen=True):
    """The bytes that the modules of one rank hold together; null: of some module it is not known."""

    parameter_bytes: Annotated[int | None, Meta(description="each parameter once")] = None
    gradient_bytes: Annotated[int | None, Meta(description="at the end of the optimizer's step")] = None
    optimizer_bytes: Annotated[int | None, Meta(description="the optimizer's state for these parameters")] = None
    saved_bytes: Annotated[int | None, Meta(description="tensors for backward, each storage once")] = None


class ModuleTree(msgspec.Struct, kw_only=True, frozen=True):
    """One iteration. `nodes` are those with the most time, a node before what is inside it."""

    ranks: int = 1
    measured_iterations: Annotated[
        int, Meta(description="of a rank, whose medians the times are; 0: they are of the marked iteration alone", ge=0)
    ] = 0
    iteration_ns: Annotated[int, Meta(description="of these the median, or the marked one, ns", ge=0)] = 0
    whole: Annotated[ModuleTimes, Meta(description="all operators and device work of the iteration")] = ModuleTimes()
    in_modules: Annotated[ModuleTimes, Meta(description="of it in modules")] = ModuleTimes()
    unassigned_backward: Annotated[
        ModuleTimes, Meta(description="of it in backward whose forward was not in a module, or is not known")
    ] = ModuleTimes()
    unmatched: Annotated[
        ModuleTimes,
        Meta(
            description="of it in operators unlike those of the marked iteration; at most a module around them is known"
        ),
    ] = ModuleTimes()
    recompute: Annotated[ModuleTimes, Meta(description="of it computed again within backward")] = ModuleTimes()
    communication: Annotated[ModuleTimes, Meta(description="of it in collectives, which belong to no module")] = (
        ModuleTimes()
    )
    ended_early: Annotated[bool, Meta(description="something was compiled meanwhile: what came later is missing")] = (
        False
    )
    left_out: Annotated[int, Meta(description="nodes that are not listed; their time is in those around them")] = 0
    held: Annotated[HeldBytes, Meta(description="of the first rank, also by modules that are not listed")] = HeldBytes()
    rows: Annotated[
        int | None, Meta(description="of the first tensor that `rows_of` is given, over all its calls; mean of a rank")
    ] = None
    rows_of: Annotated[str, Meta(description="the root with the most time")] = ""
    indices: Annotated[
        int | None, Meta(description="elements that `indices_of` is given, over all its calls; mean of a rank")
    ] = None
    indices_of: Annotated[str, Meta(description="the embedding inside that root that is given most")] = ""
    nodes: list[ModuleNode] = []
