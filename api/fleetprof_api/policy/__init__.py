"""ProfilePolicy: when to capture by itself, and how much at most (`fleetprof.io/v1alpha1`, docs/policy.md).

Guarantees: as for a ProfileRequest: these types are the one source of the kind, `parse_policy` names all that is wrong,
and the API server refuses the same policies in the same words.
"""

from fleetprof_api.policy.budget import DAY_S, Budget
from fleetprof_api.policy.document import KIND, InvalidPolicy, ProfilePolicy, parse_policy
from fleetprof_api.policy.selector import JobSelector
from fleetprof_api.policy.spec import Mode, PolicySpec, Template, dump_template
from fleetprof_api.policy.status import (
    MOST_CAPTURES,
    MOST_SUPPRESSIONS,
    PolicyCapture,
    PolicyStatus,
    PolicySuppression,
    Suppression,
)
from fleetprof_api.policy.triggers import (
    AlertTrigger,
    IterationTimeDriftTrigger,
    LowUtilizationTrigger,
    ScheduleTrigger,
    StalledTrigger,
    SteadyStateTrigger,
    StragglerTrigger,
    Trigger,
    TriggerType,
)

__all__ = [
    "DAY_S",
    "KIND",
    "MOST_CAPTURES",
    "MOST_SUPPRESSIONS",
    "AlertTrigger",
    "Budget",
    "InvalidPolicy",
    "IterationTimeDriftTrigger",
    "JobSelector",
    "LowUtilizationTrigger",
    "Mode",
    "PolicyCapture",
    "PolicySpec",
    "PolicyStatus",
    "PolicySuppression",
    "ProfilePolicy",
    "ScheduleTrigger",
    "StalledTrigger",
    "SteadyStateTrigger",
    "StragglerTrigger",
    "Suppression",
    "Template",
    "Trigger",
    "TriggerType",
    "dump_template",
    "parse_policy",
]
