"""The section `energy` of a report: what the job's devices took, iteration by iteration.

Guarantees: part of `report.json` and its schema; a sum is that of all GPU ranks of the report, or there is none.
Formulas: docs/measures.md#energy.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class WorstGpu(msgspec.Struct, kw_only=True, frozen=True):
    """The GPU that is clearly worse than others of its model with the same kernels, to be drained."""

    rank: int
    node_name: Annotated[str, Meta(description="the node, or the host where no node is known")]
    device_name: str
    energy_permille: Annotated[
        int | None, Meta(description="median energy of its iterations, of its peers' median; null: not known")
    ] = None
    sm_clock_permille: Annotated[
        int | None, Meta(description="mean clock of its SMs, of its peers' median; null: not known")
    ] = None
    peers: Annotated[int, Meta(description="the other GPUs with the same work whose figure is known", ge=0)]


class Energy(msgspec.Struct, kw_only=True, frozen=True):
    """Energy of the sampled devices, summed over the GPU ranks; that of each rank is in `ranks[].iterations[]`."""

    ranks: Annotated[int, Meta(description="ranks in the sum", ge=0)]
    iterations: Annotated[list[int], Meta(description="their index, or their position where `iterations_by` says so")]
    iterations_by: Literal["index", "position"]
    energy_mj: Annotated[list[int | None], Meta(description="mJ; null where a rank's is not known")]
    mean_mj: Annotated[int, Meta(description="mean over the iterations whose sum is known", ge=0)]
    samples_per_iteration: Annotated[
        int | None, Meta(description="training samples over all ranks of the job, by its pods' label")
    ] = None
