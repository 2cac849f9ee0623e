"""ProfilePolicies: what each waits for, what fired, what was captured, what was suppressed and why."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.model import Model, UnixNs


class PolicyAction(Model):
    """An action of a policy, or an omission, when a trigger fired for a job."""

    namespace: str
    policy: str
    trigger: str
    workload_kind: str
    workload_name: str
    action: Annotated[str, Meta(description="captured, would capture (dry run), or suppressed")]
    reason: Annotated[str, Meta(description='why it was suppressed, or how the capture ended; "" while it goes on')]
    message: Annotated[str, Meta(description="what was seen, or why there is no capture, in a sentence")]
    headline: Annotated[str, Meta(description='what the report says first; ""')]
    request: Annotated[str, Meta(description='name of the ProfileRequest; ""')]
    uid: Annotated[str, Meta(description='uid of the ProfileRequest; "" where it is not known')]
    count: Annotated[int, Meta(description="how often, where alike ones are one entry")]
    first_unix_ns: UnixNs | None
    at_unix_ns: UnixNs | None


class Policy(Model):
    """One ProfilePolicy in a list."""

    namespace: str
    name: str
    mode: str
    ready: bool
    message: Annotated[str, Meta(description="of its condition Ready")]
    triggers: Annotated[list[str], Meta(description="name: type")]
    fired: int
    captured: int
    suppressed: int
    last_fired_unix_ns: UnixNs | None


class PolicyPage(Model):
    """The policies that the person may read."""

    items: list[Policy]
    total: int


class PolicyDetail(Model):
    """One ProfilePolicy: its spec as YAML, and what it did, the latest first."""

    policy: Policy
    spec_yaml: str
    actions: list[PolicyAction]
