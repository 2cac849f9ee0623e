"""The watch of each trigger type: a new type is a module here and its row."""

from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.policy import PolicySpec, Trigger, TriggerType

from fleetprof_operator.policies.triggers.alert import AlertWatch
from fleetprof_operator.policies.triggers.iteration_time_drift import IterationTimeDriftWatch
from fleetprof_operator.policies.triggers.low_utilization import LowUtilizationWatch
from fleetprof_operator.policies.triggers.schedule import ScheduleWatch
from fleetprof_operator.policies.triggers.stalled import StalledWatch
from fleetprof_operator.policies.triggers.steady_state import SteadyStateWatch
from fleetprof_operator.policies.triggers.straggler import StragglerWatch
from fleetprof_operator.policies.triggers.watch import Watch

WATCHES: Final[Mapping[TriggerType, type[Watch[Any]]]] = {
    TriggerType.LOW_UTILIZATION: LowUtilizationWatch,
    TriggerType.ALERT: AlertWatch,
    TriggerType.STEADY_STATE: SteadyStateWatch,
    TriggerType.SCHEDULE: ScheduleWatch,
    TriggerType.STRAGGLER: StragglerWatch,
    TriggerType.ITERATION_TIME_DRIFT: IterationTimeDriftWatch,
    TriggerType.STALLED: StalledWatch,
}


def answers_with_stacks(spec: PolicySpec, trigger: str, occasion: str) -> bool:
    """Tells whether the request of a policy's trigger of this name for this occasion asks for stacks."""
    if spec.template.spec.capture is not None:
        return True
    return any(WATCHES[one.type].answers_with_stacks(occasion) for one in spec.triggers if one.name == trigger)


def make_watch(trigger: Trigger) -> Watch[Any]:
    """The watch of one trigger before one job. Raises InvalidTrigger where it can never fire."""
    return WATCHES[trigger.type](trigger.name, trigger.details())
