"""A policy's spec: its triggers, its jobs, its captures and their budget."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fleetprof_api.policy.budget import Budget
from fleetprof_api.policy.selector import JobSelector
from fleetprof_api.policy.triggers import Trigger
from fleetprof_api.request.part import Part
from fleetprof_api.request.rules import LIST_TYPE, Rule
from fleetprof_api.request.spec import Recording

MOST_TRIGGERS: Final = 8


class Mode(StrEnum):
    """The mode in which a policy captures, or does not."""

    CAPTURE = "Capture"
    DRY_RUN = "DryRun"


class _ByName(Rule):
    """Triggers are told apart by name: a list map for the API server, which refuses a repetition by itself."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), LIST_TYPE: "map", "x-kubernetes-list-map-keys": ["name"]}


def _have_names_of_their_own(triggers: list[Trigger]) -> bool:
    return len({trigger.name for trigger in triggers}) == len(triggers)


class Template(Part):
    """The ProfileRequest that is made."""

    spec: Recording = Field(
        description="The spec of the ProfileRequest without its target, which is the job that the trigger fired for."
    )


class PolicySpec(Part):
    """A policy's triggers, its jobs, its captures and their budget."""

    selector: JobSelector | None = Field(
        default=None,
        description="The jobs that the policy covers, by labels of their pods; all jobs of the namespace when absent. "
        "Jobs without fleetprof's sidecar are never among them.",
    )
    triggers: Annotated[
        list[Trigger],
        Field(min_length=1, max_length=MOST_TRIGGERS),
        _ByName("", "must not name a trigger twice", _have_names_of_their_own),
    ] = Field(description="What makes it capture: any one of these.")
    budget: Budget = Field(default=Budget(), description="The most that it captures, whatever fires.")
    template: Template = Field(description="What it captures.")
    mode: Annotated[Mode, Field(strict=False)] = Field(
        default=Mode.CAPTURE,
        description="Whether it captures (Capture), or only records in status what it would capture (DryRun).",
    )


def dump_template(template: Template) -> dict[str, Any]:
    """The spec of a ProfileRequest without its target, as it is written."""
    return template.spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
