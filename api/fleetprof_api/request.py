"""ProfileRequest: one bounded capture, as a user asks for it (`fleetprof.io/v1alpha1`, design §4.1).

Guarantees: `parse_request` either returns a request in which every rule holds, or raises `InvalidRequest` with *all*
that is wrong, each with the field's path, the rule and the allowed values. The YAML that is applied to Kubernetes and
the YAML that `fleetprof capture -f` takes are the same. pydantic and PyYAML are imported here and nowhere else in the
contract, so that the sidecar's image does without them.
"""

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

API_VERSION: Final = "fleetprof.io/v1alpha1"
KIND: Final = "ProfileRequest"
_DNS_NAME: Final = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


class InvalidRequest(ValueError):
    """A request that breaks rules; `problems` holds one sentence per broken rule, each beginning with the field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Collect(StrEnum):
    """What to record beside operators and kernels; each costs time in the trainer."""

    SHAPES = "Shapes"
    STACKS = "Stacks"
    MODULES = "Modules"
    MEMORY = "Memory"
    FLOPS = "Flops"
    DEVICE_METRICS = "DeviceMetrics"


class Traces(StrEnum):
    """Which ranks upload a whole trace."""

    FULL = "Full"
    SUMMARY = "Summary"
    AUTO = "Auto"


class Redact(StrEnum):
    """What to remove before anything leaves the pod."""

    SHAPES = "Shapes"
    PATHS = "Paths"
    NAMES = "Names"


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True)


def _rule(message: str) -> PydanticCustomError:
    # The message goes through as a value, never as a template: it may hold braces.
    return PydanticCustomError("rule", "{text}", {"text": message})


def _exactly_one(part: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(part, name) is not None]
    if len(given) != 1:
        wanted = ", ".join(to_camel(name) for name in names)
        raise _rule(f"exactly one of {wanted} must be set, got {len(given)}")


class WorkloadReference(_Part):
    """A workload by reference; its ranks are found by the labels of its kind or by owner references."""

    api_version: str = Field(
        min_length=2, max_length=317, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$"
    )
    kind: str = Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")
    name: str = Field(min_length=1, max_length=253, pattern=rf"^{_DNS_NAME}$")


class LabelRequirement(_Part):
    """One requirement of a label selector (Kubernetes' LabelSelectorRequirement)."""

    key: str = Field(min_length=1, max_length=316)
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[Annotated[str, Field(max_length=63)]] | None = Field(default=None, max_length=32)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.operator in ("Exists", "DoesNotExist")) == bool(self.values):
            raise _rule("values must be set for In and NotIn, and must not be set for Exists and DoesNotExist")
        return self


class Selector(_Part):
    """A label selector (Kubernetes' LabelSelector); an empty one is refused."""

    match_labels: dict[str, Annotated[str, Field(max_length=63)]] | None = Field(default=None, max_length=16)
    match_expressions: list[LabelRequirement] | None = Field(default=None, max_length=16)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.match_labels and not self.match_expressions:
            raise _rule("matchLabels or matchExpressions must hold something; an empty selector is refused")
        return self

    def matches(self, labels: dict[str, str]) -> bool:
        """Tells whether a pod with these labels is chosen."""
        if any(labels.get(key) != value for key, value in (self.match_labels or {}).items()):
            return False
        for requirement in self.match_expressions or []:
            value = labels.get(requirement.key)
            match requirement.operator:
                case "In":
                    fits = value in (requirement.values or [])
                case "NotIn":
                    fits = value not in (requirement.values or [])
                case "Exists":
                    fits = value is not None
                case "DoesNotExist":
                    fits = value is None
            if not fits:
                return False
        return True


class Target(_Part):
    """What to profile: a workload or a label selector."""

    workload: WorkloadReference | None = None
    selector: Selector | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _exactly_one(self, "workload", "selector")
        return self


class Ranks(_Part):
    """Which ranks to capture; all when absent."""

    list_: list[Annotated[int, Field(ge=0, le=1_000_000)]] | None = Field(
        default=None, alias="list", min_length=1, max_length=1024
    )
    sample: int | None = Field(default=None, ge=1, le=100_000)
    every: int | None = Field(default=None, ge=2, le=100_000)

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = sum(value is not None for value in (self.list_, self.sample, self.every))
        if given != 1:
            raise _rule(f"exactly one of list, sample, every must be set, got {given}")
        if self.list_ is not None and len(set(self.list_)) != len(self.list_):
            raise _rule("list must not name a rank twice")
        return self


class Window(_Part):
    """How much to capture: whole training iterations, or a length of time."""

    iterations: int | None = Field(default=None, ge=1, le=100)
    duration_millis: int | None = Field(default=None, ge=10, le=60_000)
    warmup_iterations: int | None = Field(default=None, ge=0, le=100)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _exactly_one(self, "iterations", "duration_millis")
        if self.warmup_iterations is not None and self.iterations is None:
            raise _rule("warmupIterations needs iterations")
        return self


class Limits(_Part):
    """The capture is aborted on a rank that passes a limit."""

    max_trace_bytes: int | None = Field(default=None, ge=1 << 20, le=1 << 36)
    max_slowdown_percent: int | None = Field(default=None, ge=1, le=1000)


class Storage(_Part):
    """Where the result goes, below what the administrator configured."""

    profile: str | None = Field(default=None, min_length=1, max_length=63)


class Analysis(_Part):
    """How the analysis is run."""

    parallelism: int | None = Field(default=None, ge=1, le=1000)
    resources: dict[Literal["requests", "limits"], dict[str, str | int]] | None = None


class Spec(_Part):
    """What to capture, from which ranks, when and within which limits. Fixed at creation, except `suspend`."""

    target: Target
    ranks: Ranks | None = None
    window: Window
    collect: list[Annotated[Collect, Field(strict=False)]] = Field(default=[], max_length=6)
    traces: Annotated[Traces, Field(strict=False)] = Traces.FULL
    redact: list[Annotated[Redact, Field(strict=False)]] = Field(default=[], max_length=3)
    limits: Limits | None = None
    active_deadline_seconds: int = Field(default=900, ge=30, le=86_400)
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=31_536_000)
    suspend: bool = False
    storage: Storage | None = None
    analysis: Analysis | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.window.duration_millis is not None and self.window.duration_millis > 10_000 and self.ranks is None:
            raise _rule("window.durationMillis above 10000 needs ranks to choose some ranks")
        for name, items in (("collect", self.collect), ("redact", self.redact)):
            if len(set(items)) != len(items):
                raise _rule(f"{name} must not name a value twice")
        return self


class Metadata(BaseModel):
    """Kubernetes' ObjectMeta, as far as we read it; what else is there is kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)

    name: str | None = Field(default=None, min_length=1, max_length=52, pattern=rf"^{_DNS_NAME}$")
    generate_name: str | None = Field(default=None, min_length=1, max_length=46)
    namespace: str | None = Field(default=None, min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ProfileRequest(_Part):
    """One bounded capture of a running training workload."""

    api_version: Literal["fleetprof.io/v1alpha1"]
    kind: Literal["ProfileRequest"]
    metadata: Metadata = Metadata()
    spec: Spec
    status: dict[str, Any] | None = None

    def to_json(self) -> str:
        """The request in the form it was written in, defaults filled in."""
        return self.model_dump_json(by_alias=True, exclude_none=True)

    def target_text(self) -> str:
        """What is profiled, in short: `Job/llama` or the selector."""
        target = self.spec.target
        if target.workload is not None:
            return f"{target.workload.kind}/{target.workload.name}"
        selector = target.selector
        assert selector is not None
        labels = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
        expressions = [
            f"{e.key} {e.operator}" + (f" ({', '.join(e.values)})" if e.values else "")
            for e in selector.match_expressions or []
        ]
        return ",".join(labels + expressions)


_WORDS: Final = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this object",
}


def _sentence(error: ErrorDetails) -> str:
    path = ""
    for part in error["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    said = _WORDS.get(error["type"]) or re.sub(r"^Input should", "should", error["msg"])
    given = error["input"]
    shown = (
        f", got {given!r}" if isinstance(given, str | int | float | bool) and error["type"] != "extra_forbidden" else ""
    )
    return f"{path or 'request'}: {said}{shown}"[:400]


def parse_request(document: object) -> ProfileRequest:
    """A request from its decoded YAML or JSON. Raises InvalidRequest naming every wrong field."""
    try:
        return ProfileRequest.model_validate(document)
    except ValidationError as error:
        raise InvalidRequest([_sentence(detail) for detail in error.errors(include_url=False)]) from None


def load_request(text: str) -> ProfileRequest:
    """A request from YAML or JSON text that holds one document. Raises InvalidRequest."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise InvalidRequest([f"request: is not YAML: {' '.join(str(error).split())}"]) from None
    if len(documents) != 1:
        raise InvalidRequest([f"request: must be one YAML document, got {len(documents)}"])
    return parse_request(documents[0])
