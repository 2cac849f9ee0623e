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
_MOST_CHARACTERS: Final = 64 << 10
_MOST_DEPTH: Final = 32


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
        """The target in short: `Job/llama` or the selector."""
        return self.spec.target.text()


def parse_request(document: object) -> ProfileRequest:
    """A request from its decoded YAML or JSON. Raises InvalidRequest naming every wrong field."""
    try:
        return ProfileRequest.model_validate(document)
    except ValidationError as error:
        problems = [say_problem(ProfileRequest, detail) for detail in error.errors(include_url=False)]
        raise InvalidRequest(problems) from None


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


class _PlainLoader(yaml.SafeLoader):
    """YAML whose documents are as large as their text, and no deeper than anything of ours."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.YAMLError(f"line {_line_of(event)}: anchors and aliases (& and *) are not taken")
        if self._depth >= _MOST_DEPTH:
            raise yaml.YAMLError(f"line {_line_of(event)}: it is deeper than {_MOST_DEPTH} levels")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def load_plain_yaml(text: str) -> list[object]:
    """The documents of a text, which is refused before it is parsed where it is too long. Raises YAMLError."""
    if len(text) > _MOST_CHARACTERS:
        raise yaml.YAMLError(f"it has more than {_MOST_CHARACTERS:,} characters")
    return list(yaml.load_all(text, _PlainLoader))


def load_request(text: str) -> ProfileRequest:
    """A request from YAML or JSON text that holds one document. Raises InvalidRequest."""
    try:
        documents = [document for document in load_plain_yaml(text) if document is not None]
    except yaml.YAMLError as error:
        raise InvalidRequest([f"request: is not YAML: {' '.join(str(error).split())}"]) from None
    if len(documents) != 1:
        raise InvalidRequest([f"request: must be one YAML document, got {len(documents)}"])
    return parse_request(documents[0])
