"""Right and wrong policies, for the API server and the typed Python alike."""

from functools import partial
from typing import Any

from harness.kubernetes.documents.fields import with_field

POLICIES = "/apis/fleetprof.io/v1alpha1/namespaces/default/profilepolicies"
VALID: dict[str, Any] = {
    "apiVersion": "fleetprof.io/v1alpha1",
    "kind": "ProfilePolicy",
    "metadata": {"name": "starved", "namespace": "default"},
    "spec": {
        "triggers": [{"name": "low", "type": "LowUtilization"}],
        "template": {"spec": {"window": {"iterations": 5}}},
    },
}


with_value = partial(with_field, VALID)
"""The valid policy with the field at `path` set; None takes it away."""


def _one(kind: str, **more: object) -> list[dict[str, Any]]:
    return [{"name": "a", "type": kind, **more}]


TRIGGERS = "spec.triggers"
OWN_FIELD = "spec.triggers[] may hold the field of its own type only"
NEEDED = "of type SteadyState needs steadyState.iteration, and one of type Schedule needs schedule.cron"

# path and value that leave the policy right: the ends of bounds, and the other side of each rule
RIGHT: list[tuple[str, Any]] = [
    ("metadata.name", "a" * 52),
    ("spec.mode", "DryRun"),
    ("spec.selector", {"matchLabels": {"app": "x"}}),
    ("spec.selector", {"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    (TRIGGERS, [{"name": f"t{n}", "type": "Alert"} for n in range(8)]),
    (TRIGGERS, _one("LowUtilization", lowUtilization={"belowPermille": 1, "forSeconds": 86_400})),
    (TRIGGERS, _one("Straggler", straggler={"belowPermille": 999})),
    (TRIGGERS, _one("IterationTimeDrift", iterationTimeDrift={"slowerPermille": 10_000, "forSeconds": 300})),
    (TRIGGERS, _one("Stalled", stalled={"forSeconds": 60})),
    (TRIGGERS, _one("SteadyState", steadyState={"iteration": 1})),
    (TRIGGERS, _one("Schedule", schedule={"cron": "*/5 0-23 1,15 JAN-DEC sun#2", "timeZone": "Europe/Berlin"})),
    (TRIGGERS, _one("Alert", alert={"names": ["FleetprofLowUtilization", "_x"]})),
    (
        "spec.budget",
        {"perDay": 100, "concurrent": 20, "cooldownSeconds": 60, "bytesPerDay": 1 << 20, "minimumAgeSeconds": 0},
    ),
    ("spec.template.spec", {"window": {"durationMillis": 60_000}, "ranks": {"sample": 4}, "suspend": True}),
]

# path and value that make the policy wrong, the field that the API server names, its words
WRONG: list[tuple[str, Any, str, str]] = [
    ("metadata.name", "a" * 53, "metadata.name", "must have at most 52 characters"),
    ("spec.triggers", None, TRIGGERS, "Required value"),
    ("spec.triggers", [], TRIGGERS, "should have at least 1 items"),
    ("spec.template", None, "spec.template", "Required value"),
    ("spec.mode", "Dry", "spec.mode", "Unsupported value"),
    ("spec.selector", {}, "spec.selector", "leave it out for all jobs of the namespace"),
    ("spec.selector", {"matchLabels": {"a b": "x"}}, "spec.selector.matchLabels", "must have label names"),
    (TRIGGERS, _one("LowUse"), "spec.triggers[0].type", "Unsupported value"),
    (TRIGGERS, _one("Alert") * 2, "spec.triggers[1]", "Duplicate value"),
    (TRIGGERS, _one("Alert", straggler={}), "spec.triggers[0].type", OWN_FIELD),
    (TRIGGERS, _one("SteadyState"), "spec.triggers[0].type", NEEDED),
    (TRIGGERS, _one("Schedule"), "spec.triggers[0].type", NEEDED),
    (TRIGGERS, _one("Schedule", schedule={"cron": "0 3 * *"}), "spec.triggers[0].schedule.cron", "at least 9 chars"),
    (TRIGGERS, _one("Schedule", schedule={"cron": "0 3 * * * *"}), "spec.triggers[0].schedule.cron", "five fields"),
    (
        TRIGGERS,
        _one("Schedule", schedule={"cron": "0 3 * * *", "timeZone": "Berlin!"}),
        "spec.triggers[0].schedule.timeZone",
        "must be a time zone's name",
    ),
    (TRIGGERS, _one("Alert", alert={"names": ["a-b"]}), "spec.triggers[0].alert.names[0]", "must be an alert's name"),
    (TRIGGERS, _one("Alert", alert={"names": ["a", "a"]}), "spec.triggers[0].alert.names[1]", "Duplicate value"),
    ("spec.budget.perDay", 101, "spec.budget.perDay", "less than or equal to 100"),
    ("spec.budget.cooldownSeconds", 59, "spec.budget.cooldownSeconds", "greater than or equal to 60"),
    ("spec.budget.bytesPerDay", 1, "spec.budget.bytesPerDay", "greater than or equal to 1048576"),
    (
        "spec.template.spec",
        {"window": {}},
        "spec.template.spec.window",
        "or both must be set",
    ),
    (
        "spec.template.spec",
        {"window": {"durationMillis": 60_000}},
        "spec.template.spec.window.durationMillis",
        "needs spec.ranks to choose some ranks",
    ),
]
