"""The whole policy: what is written in a file and applied to Kubernetes."""

from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from fleetprof_api.errors import FleetprofError
from fleetprof_api.policy.spec import PolicySpec
from fleetprof_api.request.document import Metadata
from fleetprof_api.request.part import Part
from fleetprof_api.request.refusal import say_problem

KIND: Final = "ProfilePolicy"


class InvalidPolicy(FleetprofError, ValueError):
    """A policy that breaks rules; `problems` holds one sentence per broken rule, each beginning with the field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ProfilePolicy(Part):
    """ProfilePolicy captures running training jobs of its namespace when something fires: low use, an alert, a
    schedule. It makes ProfileRequests within its budget, and says in its status what fired, what was captured, and what
    was not and why. See it act with: kubectl describe profpol NAME
    """

    api_version: Literal["fleetprof.io/v1alpha1"] = Field(description="Version of this form.")
    kind: Literal["ProfilePolicy"] = Field(description="Kind of this document.")
    metadata: Metadata = Field(default=Metadata(), description="Kubernetes' ObjectMeta; its other fields are kept.")
    spec: PolicySpec = Field(description="What fires, for which jobs, what is captured then, and how much of it.")
    status: dict[str, Any] | None = Field(default=None, description="What happened; only the operator writes it.")


def parse_policy(document: object) -> ProfilePolicy:
    """A policy from its decoded YAML or JSON. Raises InvalidPolicy naming every wrong field."""
    try:
        return ProfilePolicy.model_validate(document)
    except ValidationError as error:
        problems = [say_problem(ProfilePolicy, detail) for detail in error.errors(include_url=False)]
        raise InvalidPolicy(problems) from None
