"""The whole document: what is written in a file and applied to Kubernetes."""

from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from fleetprof_api.request.part import Part
from fleetprof_api.request.patterns import DNS_LABEL, NAME
from fleetprof_api.request.refusal import InvalidRequest, say_problem
from fleetprof_api.request.spec import Spec

API_VERSION: Final = "fleetprof.io/v1alpha1"
KIND: Final = "ProfileRequest"


class Metadata(BaseModel):
    """Kubernetes' ObjectMeta, as far as we read it; what else is there is kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)

    name: Annotated[str, NAME] | None = Field(
        default=None,
        min_length=1,
        max_length=52,
        description="The request's name; made from `generateName` when absent.",
    )
    generate_name: str | None = Field(
        default=None, min_length=1, max_length=46, description="Beginning of a name that is made."
    )
    namespace: Annotated[str, DNS_LABEL] | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="Where the workload runs; `local` in local mode.",
    )
    labels: dict[str, str] = Field(default={}, description="Labels of the request.")
    annotations: dict[str, str] = Field(default={}, description="Annotations of the request.")


class ProfileRequest(Part):
    """ProfileRequest asks for one bounded capture of a running training job: the same few iterations on every chosen
    rank, stored in the object store and analysed. Everything in spec is fixed at creation, except suspend (from true to
    false) and ttlSecondsAfterFinished. Delete the request to take the capture back. Wait for either end with:
    kubectl wait --for=jsonpath='{.status.completionTime}' profreq/NAME
    """

    api_version: Literal["fleetprof.io/v1alpha1"] = Field(description="Version of this form.")
    kind: Literal["ProfileRequest"] = Field(description="Kind of this document.")
    metadata: Metadata = Field(default=Metadata(), description="Kubernetes' ObjectMeta; its other fields are kept.")
    spec: Spec = Field(description="What to capture, from which ranks, when and within which limits.")
    status: dict[str, Any] | None = Field(default=None, description="What happened; only the operator writes it.")

    def to_json(self) -> str:
        """The request in the form it was written in, defaults filled in."""
        return self.model_dump_json(by_alias=True, exclude_none=True)

    def target_text(self) -> str:
        """What is profiled, in short: `Job/llama` or the selector."""
        return self.spec.target.text()


def parse_request(document: object) -> ProfileRequest:
    """A request from its decoded YAML or JSON. Raises InvalidRequest naming every wrong field."""
    try:
        return ProfileRequest.model_validate(document)
    except ValidationError as error:
        problems = [say_problem(ProfileRequest, detail) for detail in error.errors(include_url=False)]
        raise InvalidRequest(problems) from None


def load_request(text: str) -> ProfileRequest:
    """A request from YAML or JSON text that holds one document. Raises InvalidRequest."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise InvalidRequest([f"request: is not YAML: {' '.join(str(error).split())}"]) from None
    if len(documents) != 1:
        raise InvalidRequest([f"request: must be one YAML document, got {len(documents)}"])
    return parse_request(documents[0])
