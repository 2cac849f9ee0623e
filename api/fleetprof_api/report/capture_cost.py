"""The section `capture_cost` of a report: what the capture cost the job.

Guarantees: part of `report.json` and its schema; no number without enough iterations behind it.
"""

from typing import Annotated

import msgspec
from msgspec import Meta


class Interval(msgspec.Struct, kw_only=True, frozen=True):
    """A confidence interval."""

    low: float
    high: float


class Phase(msgspec.Struct, kw_only=True, frozen=True):
    """Iteration times of one phase of the capture, over the job."""

    iterations: int
    median_ns: int | None = None
    median_low_ns: int | None = None
    median_high_ns: int | None = None


class CaptureCost(msgspec.Struct, kw_only=True, frozen=True):
    """The cost of the capture for the job, from the agent's step times. Formulas: docs/measures.md#capture-cost."""

    before: Phase
    during: Phase
    after: Phase
    during_ratio: Annotated[float | None, Meta(description="median during / median before")] = None
    during_ratio_interval: Interval | None = None
    stall_ns: Annotated[
        int | None, Meta(description="excess of the longest iteration between the window's end and the written trace")
    ] = None
    residue_ratio: Annotated[float | None, Meta(description="median after / median before, minus 1")] = None
    residue_interval: Interval | None = None
    residue_is_zero: Annotated[bool | None, Meta(description="the interval holds 0; null: too few iterations")] = None
    confidence_permille: int = 950
    method: str = ""
    ranks: Annotated[int, Meta(description="ranks whose step times were used")] = 0
