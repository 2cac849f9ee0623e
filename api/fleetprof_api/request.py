"""ProfileRequest: one bounded capture, as a user asks for it (`fleetprof.io/v1alpha1`, design §4.1).

Guarantees: `parse_request` either returns a request in which every rule holds, or raises `InvalidRequest` with *all*
that is wrong, each with the field's path, the rule and the allowed values. The YAML that is applied to Kubernetes and
the YAML that `fleetprof capture -f` takes are the same. pydantic and PyYAML are imported here and nowhere else in the
contract, so that the sidecar's image does without them.
"""

import re
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from fleetprof_api.request_fields import field_names, find_rule

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
        min_length=2,
        max_length=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$",
        description="API group and version of the workload's kind.",
    )
    kind: str = Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$", description="The workload's kind.")
    name: str = Field(
        min_length=1,
        max_length=253,
        pattern=rf"^{_DNS_NAME}$",
        description="The workload's name; in local mode that of `fleetprof run --name`.",
    )


class LabelRequirement(_Part):
    """One requirement of a label selector (Kubernetes' LabelSelectorRequirement)."""

    key: str = Field(min_length=1, max_length=316, description="The label's name.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label is compared with `values`."
    )
    values: list[Annotated[str, Field(max_length=63)]] | None = Field(
        default=None, max_length=32, description="What it is compared with, for In and NotIn."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.operator in ("Exists", "DoesNotExist")) == bool(self.values):
            raise _rule("values must be set for In and NotIn, and must not be set for Exists and DoesNotExist")
        return self


class Selector(_Part):
    """A label selector (Kubernetes' LabelSelector); an empty one is refused."""

    match_labels: dict[str, Annotated[str, Field(max_length=63)]] | None = Field(
        default=None, max_length=16, description="Labels that must all be there with these values."
    )
    match_expressions: list[LabelRequirement] | None = Field(
        default=None, max_length=16, description="Further requirements, all of which must hold."
    )

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

    workload: WorkloadReference | None = Field(default=None, description="A workload by its name.")
    selector: Selector | None = Field(default=None, description="Pods by their labels.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _exactly_one(self, "workload", "selector")
        return self


class Ranks(_Part):
    """Which ranks to capture; all when absent."""

    list_: list[Annotated[int, Field(ge=0, le=1_000_000)]] | None = Field(
        default=None,
        alias="list",
        min_length=1,
        max_length=1024,
        description="Exactly these ranks.",
    )
    sample: int | None = Field(default=None, ge=1, le=100_000, description="So many ranks, spread evenly over all.")
    every: int | None = Field(default=None, ge=2, le=100_000, description="Every Nth rank, beginning with 0.")

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

    iterations: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="How many whole training iterations to record, the same ones on every rank.",
    )
    duration_millis: int | None = Field(
        default=None,
        ge=10,
        le=60_000,
        description="How long to record instead; above 10000 only together with `ranks`.",
    )
    warmup_iterations: int | None = Field(
        default=None, ge=0, le=100, description="Iterations that are traced and thrown away before; needs `iterations`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _exactly_one(self, "iterations", "duration_millis")
        if self.warmup_iterations is not None and self.iterations is None:
            raise _rule("warmupIterations needs iterations")
        return self


class Limits(_Part):
    """The capture is aborted on a rank that passes a limit."""

    max_trace_bytes: int | None = Field(
        default=None, ge=1 << 20, le=1 << 36, description="A rank whose trace is larger gives it up."
    )
    max_slowdown_percent: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="A rank whose iterations become slower by more stops recording; needs the agent.",
    )


class Storage(_Part):
    """Where the result goes, below what the administrator configured."""

    profile: str | None = Field(
        default=None, min_length=1, max_length=63, description="Name of an administrator's storage profile."
    )


class Analysis(_Part):
    """How the analysis is run."""

    parallelism: int | None = Field(default=None, ge=1, le=1000, description="How many workers the analysis may use.")
    resources: dict[Literal["requests", "limits"], dict[str, str | int]] | None = Field(
        default=None, description="Kubernetes resources of each worker."
    )


class Spec(_Part):
    """What to capture, from which ranks, when and within which limits. Fixed at creation, except `suspend`."""

    target: Target = Field(description="What to profile; exactly one of its fields.")
    ranks: Ranks | None = Field(
        default=None, description="Which ranks, exactly one of its fields; all ranks when absent."
    )
    window: Window = Field(description="How much to record; exactly one of `iterations` and `durationMillis`.")
    collect: list[Annotated[Collect, Field(strict=False)]] = Field(
        default=[], max_length=6, description="What to record beside operators and kernels; each costs time in the job."
    )
    traces: Annotated[Traces, Field(strict=False)] = Field(
        default=Traces.FULL, description="Which ranks upload a whole trace."
    )
    redact: list[Annotated[Redact, Field(strict=False)]] = Field(
        default=[], max_length=3, description="What to remove before anything leaves the pod."
    )
    limits: Limits | None = Field(default=None, description="When to give a rank up.")
    active_deadline_seconds: int = Field(
        default=900, ge=30, le=86_400, description="What is not written by then has failed."
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=31_536_000,
        description="The request is deleted so long after its end; never when absent.",
    )
    suspend: bool = Field(default=False, description="Do not begin yet.")
    storage: Storage | None = Field(
        default=None, description="Where the result goes, below what the administrator configured."
    )
    analysis: Analysis | None = Field(default=None, description="How the analysis is run.")

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

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=52,
        pattern=rf"^{_DNS_NAME}$",
        description="The request's name; made from `generateName` when absent.",
    )
    generate_name: str | None = Field(
        default=None, min_length=1, max_length=46, description="Beginning of a name that is made."
    )
    namespace: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Where the workload runs; `local` in local mode.",
    )
    labels: dict[str, str] = Field(default={}, description="Labels of the request.")
    annotations: dict[str, str] = Field(default={}, description="Annotations of the request.")


class ProfileRequest(_Part):
    """One bounded capture of a running training workload."""

    api_version: Literal["fleetprof.io/v1alpha1"] = Field(description="Version of this form.")
    kind: Literal["ProfileRequest"] = Field(description="Kind of this document.")
    metadata: Metadata = Field(default=Metadata(), description="Kubernetes' ObjectMeta; what else is in it is kept.")
    spec: Spec = Field(description="What is asked.")
    status: dict[str, Any] | None = Field(default=None, description="Written by the operator; ignored when read.")

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


# The kinds of pydantic's errors that a field's rule answers better than pydantic's own words.
_RULE_ANSWERS: Final = frozenset(
    {
        "bool_type",
        "dict_type",
        "enum",
        "greater_than_equal",
        "int_type",
        "less_than_equal",
        "list_type",
        "literal_error",
        "model_type",
        "string_pattern_mismatch",
        "string_too_long",
        "string_too_short",
        "string_type",
        "too_long",
        "too_short",
    }
)
_SHOWN: Final = 80


def _sentence(error: ErrorDetails) -> str:
    location = error["loc"]
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    given = error["input"]
    rule = find_rule(ProfileRequest, location)
    match error["type"]:
        case "missing":
            said = f"is required: {rule}" if rule else "is required"
        case "extra_forbidden":
            names = field_names(ProfileRequest, location[:-1])
            near = get_close_matches(str(location[-1]), names, 1)
            said = "is not a field here; " + (f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names)}")
        case kind if kind in _RULE_ANSWERS and rule:
            shown = f", got {_show(given)}" if isinstance(given, str | int | float | bool | None) else ""
            said = f"must be {rule}{shown}"
        case _:
            said = re.sub(r"^Input should", "should", error["msg"])
    return f"{path or 'request'}: {said}"[:600]


def _show(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
