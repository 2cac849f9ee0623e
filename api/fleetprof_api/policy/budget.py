"""The budget of a policy: the bounds that hold whatever fires."""

from typing import Final

from pydantic import Field

from fleetprof_api.limits import LEAST_TRACE_BYTES
from fleetprof_api.request.part import Part

MOST_PER_DAY: Final = 100
DAY_S: Final = 86_400


class Budget(Part):
    """The most that a policy captures. A day is the 24 hours before now."""

    per_day: int = Field(default=4, ge=1, le=MOST_PER_DAY, description="Captures within 24 hours.")
    concurrent: int = Field(default=1, ge=1, le=20, description="Captures that may be unfinished at a time.")
    cooldown_seconds: int = Field(
        default=3600,
        ge=60,
        le=DAY_S,
        description="Seconds between the beginnings of two captures of one job, those of other policies included.",
    )
    bytes_per_day: int = Field(
        default=64 << 30,
        ge=LEAST_TRACE_BYTES,
        le=1 << 44,
        description="Bytes of traces within 24 hours, as PyTorch writes them. A capture that has not ended counts with "
        "the most that it may write, `limits.maxTraceBytes` for each rank; that limit is lowered to what is left.",
    )
    minimum_age_seconds: int = Field(
        default=600, ge=0, le=7 * DAY_S, description="How long a job must have run before it is captured."
    )
