"""The section `energy` of a report: what the job's devices took, iteration by iteration.

Guarantees: part of `report.json` and its schema; a sum is that of all GPU ranks of the report, or there is none.
Formulas: docs/measures.md#energy.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class Energy(msgspec.Struct, kw_only=True, frozen=True):
    """Energy of the sampled devices, summed over the GPU ranks; that of each rank is in `ranks[].iterations[]`."""

    ranks: Annotated[int, Meta(description="ranks in the sum", ge=0)]
    iterations: Annotated[list[int], Meta(description="their index, or their position where `iterations_by` says so")]
    iterations_by: Literal["index", "position"]
    energy_mj: Annotated[list[int | None], Meta(description="mJ; null where a rank's is not known")]
    mean_mj: Annotated[int, Meta(description="mean over the iterations whose sum is known", ge=0)]
