"""The operator's words in a ProfileRequest: the state of the capture, short enough to be read by everybody.

Guarantees: bounded, however many ranks there are; the ledger of every rank is in the object store. Reading is lenient
where the request's own fields are not: a newer operator may say more.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fleetprof_api.limits import HIGHEST_RANK
from fleetprof_api.request.patterns import CONDITION_TYPE, REASON
from fleetprof_api.request.rules import LIST_TYPE, Unique


def _merged_by(field: str) -> dict[str, Any]:
    """Lets the API server merge a list: entries with the same value of this field are one."""
    return {LIST_TYPE: "map", "x-kubernetes-list-map-keys": [field]}


class StatusPart(BaseModel):
    """An object within a status; fields of a newer operator are passed over."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Condition(StatusPart):
    """One aspect of a request (Kubernetes' metav1.Condition)."""

    type: Annotated[str, CONDITION_TYPE] = Field(
        min_length=1, max_length=316, description="What the condition is about."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    observed_generation: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="The request's metadata.generation that the condition is about.",
    )
    last_transition_time: datetime = Field(description="When `status` last changed.")
    reason: Annotated[str, REASON] = Field(
        min_length=1, max_length=1024, description="One CamelCase word for machines."
    )
    message: str = Field(max_length=32_768, description="A sentence for people, with what to do.")


class RankCounts(StatusPart):
    """The number of ranks by state."""

    targeted: int | None = Field(default=None, ge=0, description="Ranks that are to be captured.")
    armed: int | None = Field(
        default=None, ge=0, description="Ranks that have taken their order, whatever happened to them afterwards."
    )
    captured: int | None = Field(default=None, ge=0, description="Ranks whose trace is complete.")
    uploaded: int | None = Field(default=None, ge=0, description="Ranks whose trace is in the object store.")
    failed: int | None = Field(default=None, ge=0, description="Ranks that will not have a trace.")


class FailedRanks(StatusPart):
    """Ranks that have no trace for one and the same reason."""

    reason: Annotated[str, REASON] = Field(min_length=1, max_length=64, description="The reason, as in the ledger.")
    ranks: int = Field(ge=1, description="How many ranks failed for it.")
    first_ranks: Annotated[list[Annotated[int, Field(ge=0, le=HIGHEST_RANK)]], Field(max_length=10), Unique()] = Field(
        default=[], description="The first of these ranks, in order."
    )
    message: str | None = Field(
        default=None,
        max_length=512,
        description="What the ledger says of the first of them, in 512 characters.",
    )


class Headline(StatusPart):
    """The report in a few values."""

    busy_permille: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="Share of the window in which the GPUs were busy, or the hosts where there is none, in permille.",
    )
    exposed_communication_permille: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="Share of the window in communication that no computation hides, in permille.",
    )
    straggler: str | None = Field(default=None, max_length=128, description="The rank that holds the others back.")
    top_finding: str | None = Field(
        default=None, max_length=512, description="The finding with the largest potential saving."
    )


class Status(StatusPart):
    """The state as it was seen."""

    conditions: list[Condition] = Field(
        default=[],
        max_length=16,
        json_schema_extra=_merged_by("type"),
        description="TargetsResolved, Captured, Uploaded, Analyzed and Succeeded. Succeeded is Unknown until the "
        "request ends; its reason tells how the request stands. Ready and Stalled say the same to tools that know no "
        "ProfileRequest (Flux, Argo CD).",
    )
    observed_generation: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="The request's metadata.generation that this status is about.",
    )
    target: str | None = Field(
        default=None,
        max_length=330,
        description="What is profiled, as kind/name or as a label selector, shortened to 330 characters.",
    )
    requester: str | None = Field(
        default=None,
        max_length=256,
        description="Who made the request, as recorded on admission; unknown if nothing recorded it.",
    )
    owner: str | None = Field(
        default=None,
        max_length=128,
        description="The release of fleetprof that serves the request, as namespace/name; no other touches it.",
    )
    ranks: RankCounts | None = Field(
        default=None, description="How far the ranks have got; the ledger of every rank is in the object store."
    )
    queue_position: int | None = Field(
        default=None,
        ge=1,
        description=(
            "Place in the queue while the request waits for its turn; 1 comes next of those that wait for the same. "
            "Absent otherwise."
        ),
    )
    failures: list[FailedRanks] = Field(
        default=[],
        max_length=8,
        json_schema_extra=_merged_by("reason"),
        description="Why ranks have no trace: the most frequent reasons. All are in the ledger.",
    )
    headline: Headline | None = Field(default=None, description="The report in a few values.")
    report_url: str | None = Field(
        default=None,
        alias="reportURL",
        max_length=2048,
        description="Where people read the report: in the web UI or, without one, in the object store; never a "
        "pre-signed URL.",
    )
    store_url: str | None = Field(
        default=None,
        alias="storeURL",
        max_length=2048,
        description="Where the report lies in the object store, for programs that read it; never a pre-signed URL.",
    )
    start_time: datetime | None = Field(default=None, description="When the first rank took its order.")
    completion_time: datetime | None = Field(default=None, description="When the request ended, well or not.")

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type, when there is one."""
        return next((condition for condition in self.conditions if condition.type == kind), None)
