"""The operator's words in a ProfilePolicy: what fired, what was captured, what was not and why.

Guarantees: bounded, whatever fires: captures of a day (and a few more), and the latest suppressions, alike ones as one
with a count. The captures are also the operator's memory of the budget: whoever takes over reads them here.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from fleetprof_api.policy.spec import Mode
from fleetprof_api.request.patterns import REASON
from fleetprof_api.request.status import Condition, StatusPart

MOST_CAPTURES: Final = 128
MOST_SUPPRESSIONS: Final = 64


class Suppression(StrEnum):
    """The reason why a trigger that fired made no capture."""

    EXEMPT = "Exempt"
    TOO_YOUNG = "TooYoung"
    ALREADY_ANSWERED = "AlreadyAnswered"
    ALREADY_CAPTURING = "AlreadyCapturing"
    COOLDOWN = "Cooldown"
    CONCURRENT = "Concurrent"
    PER_DAY = "PerDay"
    BYTES_PER_DAY = "BytesPerDay"
    REFUSED = "Refused"


_Workload = Annotated[str, Field(max_length=320)]


class PolicyCapture(StatusPart):
    """One capture that a policy made, or in a dry run would have made."""

    request: str = Field(max_length=52, description="Name of the ProfileRequest.")
    workload: _Workload = Field(description="The job, as kind/name.")
    trigger: str = Field(max_length=40, description="Name of the trigger that fired.")
    occasion: str = Field(
        max_length=128, description="What it fired for: an alert's start, a time of the schedule, a run of the job."
    )
    cause: str = Field(max_length=512, description="What was seen, in a sentence.")
    mode: Mode = Field(default=Mode.CAPTURE, description="Whether it was made (Capture) or only recorded (DryRun).")
    fired_time: datetime = Field(description="When it fired.")
    created_time: datetime | None = Field(default=None, description="When the ProfileRequest was made.")
    completion_time: datetime | None = Field(default=None, description="When the ProfileRequest ended.")
    notified_time: datetime | None = Field(
        default=None, description="When the notification of its end was delivered, or given up."
    )
    trace_bytes: int = Field(
        ge=0,
        json_schema_extra={"format": "int64"},
        description="What it counts in the budget: the most that it may write or, after its end, what it has written.",
    )
    result: Annotated[str, REASON] | None = Field(
        default=None, min_length=1, max_length=1024, description="The reason of Succeeded at the request's end."
    )
    headline: str | None = Field(default=None, max_length=512, description="What the report says first.")
    report_url: str | None = Field(default=None, alias="reportURL", max_length=2048, description="Where the report is.")

    @property
    def fired_unix_ns(self) -> int:
        """The time at which it fired."""
        return _to_unix_ns(self.fired_time)

    @property
    def completed_unix_ns(self) -> int:
        """The time at which its request ended; 0 while it goes on."""
        return _to_unix_ns(self.completion_time) if self.completion_time is not None else 0

    @property
    def is_over(self) -> bool:
        """Nothing of it runs any more."""
        return self.mode is Mode.DRY_RUN or self.completion_time is not None


class PolicySuppression(StatusPart):
    """Triggers that fired for one job and made no capture, for one reason."""

    workload: _Workload = Field(description="The job, as kind/name.")
    trigger: str = Field(max_length=40, description="Name of the trigger that fired.")
    reason: Suppression = Field(description="Why there was no capture.")
    message: str = Field(max_length=512, description="The same in a sentence, with what would have to change.")
    count: int = Field(ge=1, description="How often.")
    first_time: datetime = Field(description="When first.")
    last_time: datetime = Field(description="When last.")


class PolicyStatus(StatusPart):
    """The state as it was seen."""

    conditions: list[Condition] = Field(
        default=[],
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="Ready says whether the operator watches for the triggers. "
        "Stalled is present while the policy must be changed first.",
    )
    observed_generation: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="The policy's metadata.generation that this status is about.",
    )
    fired: int | None = Field(
        default=None, ge=0, description="How often a trigger fired for a job since the policy was made."
    )
    captured: int | None = Field(default=None, ge=0, description="How many captures these triggers made.")
    suppressed: int | None = Field(
        default=None, ge=0, description="How often a trigger that fired made no capture, for a reason."
    )
    last_fired_time: datetime | None = Field(default=None, description="When a trigger fired last.")
    captures: list[PolicyCapture] = Field(
        default=[],
        max_length=MOST_CAPTURES,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["request"]},
        description="The captures of the last 24 hours, the newest last, and those that a trigger remembers longer.",
    )
    suppressions: list[PolicySuppression] = Field(
        default=[],
        max_length=MOST_SUPPRESSIONS,
        description="The latest triggers that made no capture, the newest last; alike ones are one entry.",
    )


def _to_unix_ns(time: datetime) -> int:
    return int(time.timestamp()) * 10**9
