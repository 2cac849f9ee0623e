"""Floating-point operations of an iteration, and how far they are from what the device could do (`collect: [Shapes]`).

Guarantees: operations are those that shapes tell, by docs/measures.md#efficiency; a device whose published peak is not
known here has none, and what cannot be told is null.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.report_tables import Ns

HiddenWork = Literal["graphs", "fused"]
Roof = Literal["compute", "memory", ""]
HiddenWorks = Annotated[
    list[HiddenWork],
    Meta(description="work that no operator tells of: replayed CUDA graphs, products in fused kernels"),
]


class TypeFlops(msgspec.Struct, kw_only=True, frozen=True):
    """Operations with numbers of one data type."""

    data_type: Annotated[str, Meta(description="torch's name, such as bfloat16; empty: the trace does not say")] = ""
    flops: Annotated[int, Meta(description="floating-point operations of one iteration", ge=0)] = 0


class OperatorAmounts(msgspec.Struct, kw_only=True, frozen=True):
    """An operator by name in one iteration of a rank; `roof` and after it in `Efficiency` alone."""

    name: str
    calls: Annotated[int, Meta(description="how often it ran", ge=0)] = 0
    flops: Annotated[int, Meta(description="floating-point operations", ge=0)] = 0
    moved_bytes: Annotated[int, Meta(description="that it reads and writes at least, by its shapes", ge=0)] = 0
    work_ns: Annotated[Ns, Meta(description="of the device; of the host where there is none")] = 0
    roof: Annotated[Roof, Meta(description="the peak that bounds it: its side of the ridge; empty: not known")] = ""
    roof_permille: Annotated[
        int | None, Meta(description="least time by the device's peaks, over `work_ns`; null: not known")
    ] = None


class RankFlops(msgspec.Struct, kw_only=True, frozen=True):
    """One rank's operations, means over its complete iterations."""

    flops: Annotated[int, Meta(description="floating-point operations of one iteration", ge=0)] = 0
    by_type: Annotated[list[TypeFlops], Meta(description="by data type, the most first")] = []
    iteration_ns: Annotated[Ns, Meta(description="mean of the iterations that were counted")] = 0
    unknown_operators: Annotated[
        int, Meta(description="per iteration: matrix products and the like whose shapes do not tell theirs", ge=0)
    ] = 0
    hidden: HiddenWorks = []
    operators: Annotated[list[OperatorAmounts], Meta(description="whose bytes are known, the most time first")] = []
    single_precision: Annotated[
        Literal["float32", "tfloat32"],
        Meta(description="what float32 products ran as: tfloat32 where a kernel's name says so"),
    ] = "float32"


class Efficiency(msgspec.Struct, kw_only=True, frozen=True):
    """The ranks of one kind of device; amounts are means of one rank."""

    device_name: Annotated[str, Meta(description="empty: not known, or no device")] = ""
    ranks: int = 0
    flops: Annotated[int, Meta(description="floating-point operations of one iteration", ge=0)] = 0
    by_type: list[TypeFlops] = []
    iteration_ns: Ns = 0
    flops_per_second: Annotated[int, Meta(description="`flops` over `iteration_ns`", ge=0)] = 0
    peak_flops_per_second: Annotated[
        int | None, Meta(description="published, for this mix of data types; null: not known")
    ] = None
    peak_source: Annotated[str, Meta(description="where the peak is published")] = ""
    hardware_utilization_permille: Annotated[
        int | None, Meta(description="of the peak, what is computed again in backward with it (HFU)")
    ] = None
    model_utilization_permille: Annotated[
        int | None, Meta(description="of the peak, without it (MFU); null: what is computed again is not known")
    ] = None
    recomputed_permille: Annotated[
        int | None, Meta(description="of the operations, again in backward; null: no iteration was marked")
    ] = None
    unknown_operators: Annotated[int, Meta(description="per iteration, of all ranks the most", ge=0)] = 0
    hidden: HiddenWorks = []
    peak_bytes_per_second: Annotated[
        int | None, Meta(description="published, of the device's memory; null: not known")
    ] = None
    operators: Annotated[list[OperatorAmounts], Meta(description="whose bytes are known, the most time first")] = []


class Throughput(msgspec.Struct, kw_only=True, frozen=True):
    """The work that a job goes through in a second, at the mean time of its complete iterations."""

    ranks: int = 0
    iteration_ns: Annotated[Ns, Meta(description="mean over ranks and their complete iterations")] = 0
    rows_per_second: Annotated[
        float | None, Meta(description="of one rank: `module_tree.rows` of an iteration; null: no iteration was marked")
    ] = None
    indices_per_second: Annotated[
        float | None, Meta(description="of one rank: `module_tree.indices`, tokens where the embedding is of words")
    ] = None
    samples_per_second: Annotated[
        float | None, Meta(description="of the whole job, by the pods' label; null: no label, or labels differ")
    ] = None
    gpu_hours_per_thousand: Annotated[
        float | None,
        Meta(description="of 1,000 samples: those of the label, else rows, if each rank has its own; null: no GPU"),
    ] = None
    joules_per_thousand: Annotated[
        float | None, Meta(description="of the GPUs for as many; null: the energy of some rank is not known")
    ] = None
