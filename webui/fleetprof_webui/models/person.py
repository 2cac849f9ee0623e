"""The person who asks, what they may do here, and what an error looks like."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.model import Model


class Whoami(Model):
    """The person as this service sees them."""

    name: str
    groups: list[str]
    source: Annotated[str, Meta(description="who says so: API server, this service's mapping, this machine")]
    problem: Annotated[str, Meta(description='what is wrong with how they are known; ""')]
    mode: Annotated[
        str,
        Meta(
            description="local: this machine's user, by a one-time token; oidc: signed in; proxy: by a proxy's token; "
            "kubectl: by kubectl fleetprof ui"
        ),
    ]
    namespaces: Annotated[list[str] | None, Meta(description="that they may read; null: all")]
    may_capture: Annotated[bool, Meta(description="this service takes captures by this person")]
    version: Annotated[str, Meta(description="of fleetprof")]


class SignIn(Model):
    """The one-time token of an address that `fleetprof ui` or `kubectl fleetprof ui` opened."""

    token: Annotated[str, Meta(max_length=256)]


class SignedOut(Model):
    """The session here has ended."""

    continue_at: Annotated[str, Meta(description='where the session at the identity provider ends too; ""')]


class ProblemDetails(Model):
    """An error, as RFC 9457 has it (application/problem+json)."""

    type: str
    title: str
    status: int
    detail: str
    next_step: str
    fields: Annotated[list[str], Meta(description="parameters or fields that are wrong, each with its rule")]
