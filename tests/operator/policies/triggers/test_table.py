"""Every trigger type of the API has what it takes to fire."""

from typing import Any

import pytest
from fleetprof_api.policy import Trigger, TriggerType, parse_policy
from fleetprof_operator.policies.triggers.table import WATCHES, make_watch
from harness.kubernetes.documents.policies import with_value

REQUIRED: dict[TriggerType, dict[str, Any]] = {
    TriggerType.SCHEDULE: {"schedule": {"cron": "0 3 * * *"}},
    TriggerType.STEADY_STATE: {"steadyState": {"iteration": 1000}},
}


@pytest.mark.parametrize("kind", TriggerType, ids=lambda kind: kind.value)
def test_each_trigger_type_has_a_watch_and_a_field_of_its_own(kind: TriggerType) -> None:
    assert kind in WATCHES, f"{kind} never fires: add its module and its row to operator/.../policies/triggers/table.py"
    assert kind.name.lower() in Trigger.model_fields, f"{kind} has no field in api/.../policy/triggers.py:Trigger"
    document = with_value("spec.triggers", [{"name": "a", "type": kind.value, **REQUIRED.get(kind, {})}])
    (trigger,) = parse_policy(document).spec.triggers
    assert type(make_watch(trigger)).__name__ == f"{kind.value}Watch"
