"""The triggers of a policy: one trigger, its kind, and what there is to say of that kind."""

from enum import StrEnum
from typing import Annotated, Final, get_args

from pydantic import Field

from fleetprof_api.request.part import Part
from fleetprof_api.request.patterns import DNS_LABEL, Pattern
from fleetprof_api.request.rules import Unique, rule

CRON: Final = Pattern(
    r"^[-0-9A-Za-z*/,#]+( [-0-9A-Za-z*/,#]+){4}$",
    "that are five fields of cron, e.g. 0 3 * * 1-5",
    "must be five fields of cron with one space between them, for example 0 3 * * 1-5",
)
TIME_ZONE: Final = Pattern(
    r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$",
    "that are a time zone's name, e.g. Europe/Berlin",
    "must be a time zone's name, for example Europe/Berlin",
)
ALERT_NAME: Final = Pattern(
    r"^[A-Za-z_][A-Za-z0-9_]*$",
    "of letters, digits and _, e.g. FleetprofLowUtilization",
    "must be an alert's name, of letters, digits and _, for example FleetprofLowUtilization",
)


class TriggerType(StrEnum):
    """The values of `spec.triggers[].type`."""

    LOW_UTILIZATION = "LowUtilization"
    ALERT = "Alert"
    STEADY_STATE = "SteadyState"
    SCHEDULE = "Schedule"
    STRAGGLER = "Straggler"
    ITERATION_TIME_DRIFT = "IterationTimeDrift"
    STALLED = "Stalled"


class _Lasting(Part):
    """A state that must last before the trigger fires."""

    for_seconds: int = Field(
        default=900,
        ge=300,
        le=86_400,
        description="How much longer the job must be in that state than out of it, in steps of 30 s. A shorter state, "
        "such as an evaluation or a checkpoint, fires nothing.",
    )


class LowUtilizationTrigger(_Lasting):
    """The job uses little of its GPUs."""

    below_permille: int = Field(
        default=300,
        ge=1,
        le=999,
        description="Fires below this mean activity of the job's GPUs: of streaming multiprocessors, else what the "
        "driver calls utilisation. For a job without a GPU: below this share of its own best iteration rate.",
    )


class StragglerTrigger(_Lasting):
    """The same rank stays behind its peers."""

    below_permille: int = Field(
        default=800,
        ge=1,
        le=999,
        description="Fires when the activity of one and the same rank is below this share of the ranks' mean.",
    )


class IterationTimeDriftTrigger(_Lasting):
    """Iterations have become slower than they were in this run."""

    slower_permille: int = Field(
        default=150,
        ge=20,
        le=10_000,
        description="Fires when iterations take longer by more than this share of what they took at first.",
    )


class StalledTrigger(Part):
    """The job makes no iteration any more."""

    for_seconds: int = Field(
        default=900,
        ge=60,
        le=86_400,
        description="Fires when no iteration has ended for so long, and for three times the longest pause before, such "
        "as an evaluation or a checkpoint. What it makes is a request for stacks, whatever the template says.",
    )


class SteadyStateTrigger(Part):
    """The job has made so many iterations."""

    iteration: int = Field(
        ge=1,
        le=1_000_000_000,
        description="Fires once in each run of a job, when every rank has reached this iteration.",
    )


class ScheduleTrigger(Part):
    """At these times."""

    cron: Annotated[str, CRON] = Field(
        min_length=9, max_length=128, description="When it fires for each job, as five fields of cron."
    )
    time_zone: Annotated[str, TIME_ZONE] = Field(
        default="Etc/UTC", min_length=1, max_length=64, description="The time zone of the cron expression."
    )


class AlertTrigger(Part):
    """Alertmanager has sent one of these alerts."""

    names: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128), ALERT_NAME]], Field(max_length=32), Unique()
    ] = Field(default=[], description="Names of alerts (`alertname`); any alert about a chosen job when empty.")


_DETAILS: Final = {kind: kind.name.lower() for kind in TriggerType}
"""The field of `Trigger` that says more about a type."""
_FIELDS: Final = {kind.value: f"{kind.value[0].lower()}{kind.value[1:]}" for kind in TriggerType}


class Trigger(Part):
    """One thing that makes a policy act; the field of its type says more."""

    name: Annotated[str, DNS_LABEL] = Field(
        min_length=1, max_length=40, description="The trigger's name, by which status and Events name it."
    )
    type: Annotated[TriggerType, Field(strict=False)] = Field(description="What it waits for.")
    low_utilization: LowUtilizationTrigger | None = Field(
        default=None, description="For LowUtilization: when use is low; the defaults when absent."
    )
    alert: AlertTrigger | None = Field(default=None, description="For Alert: which alerts; any when absent.")
    steady_state: SteadyStateTrigger | None = Field(default=None, description="For SteadyState: at which iteration.")
    schedule: ScheduleTrigger | None = Field(default=None, description="For Schedule: at which times.")
    straggler: StragglerTrigger | None = Field(
        default=None, description="For Straggler: how far behind; the defaults when absent."
    )
    iteration_time_drift: IterationTimeDriftTrigger | None = Field(
        default=None, description="For IterationTimeDrift: how much slower; the defaults when absent."
    )
    stalled: StalledTrigger | None = Field(
        default=None, description="For Stalled: for how long; the default when absent."
    )

    @rule(
        " && ".join(f"(!has(self.{field}) || self.type == '{kind}')" for kind, field in _FIELDS.items()),
        "spec.triggers[] may hold the field of its own type only, for example schedule for Schedule",
        field="type",
    )
    def _holds_its_own_field_only(self) -> bool:
        return all(getattr(self, field) is None for kind, field in _DETAILS.items() if kind != self.type)

    @rule(
        "(self.type != 'SteadyState' || has(self.steadyState)) && (self.type != 'Schedule' || has(self.schedule))",
        "spec.triggers[] of type SteadyState needs steadyState.iteration, and one of type Schedule needs schedule.cron",
        field="type",
    )
    def _says_what_it_must(self) -> bool:
        required = (TriggerType.STEADY_STATE, TriggerType.SCHEDULE)
        return self.type not in required or getattr(self, _DETAILS[self.type]) is not None

    def details(self) -> Part:
        """The field of its own type, with the defaults when absent."""
        field = _DETAILS[self.type]
        given = getattr(self, field)
        if given is None:
            given = get_args(type(self).model_fields[field].annotation)[0]()
        assert isinstance(given, Part)
        return given
