"""The stored status of a policy. Made from fleetprof_api.policy.status by crds/generate.py: change that one."""

import msgspec


class PolicyCapture(msgspec.Struct, rename="camel"):
    """The part of PolicyCapture that is read."""

    request: str = ""
    workload: str = ""
    trigger: str = ""
    cause: str = ""
    fired_time: str = ""
    mode: str = "Capture"
    completion_time: str = ""
    result: str = ""
    headline: str = ""
    uid: str = ""  # of the request, once it is made


class PolicySuppression(msgspec.Struct, rename="camel"):
    """The part of PolicySuppression that is read."""

    workload: str = ""
    trigger: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_time: str = ""
    last_time: str = ""


class Condition(msgspec.Struct, rename="camel"):
    """The part of Condition that is read."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PolicyStatus(msgspec.Struct, rename="camel"):
    """The part of PolicyStatus that is read."""

    fired: int = 0
    captured: int = 0
    suppressed: int = 0
    last_fired_time: str = ""
    captures: list[PolicyCapture] = []
    suppressions: list[PolicySuppression] = []
    conditions: list[Condition] = []
