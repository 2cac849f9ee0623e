"""What to profile: a workload or a label selector."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from fleetprof_api.request.part import DNS_SUBDOMAIN, Part, break_rule, require_exactly_one

_CORE_KINDS: Final = ("Pod", "ReplicationController")  # all that own pods or are pods without an API group
_LABEL_NAME: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
_LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


class WorkloadReference(Part):
    """A workload by reference; its ranks are found by the labels of its kind or by owner references."""

    api_version: str = Field(
        min_length=2,
        max_length=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$",
        description="API group and version of the workload's kind.",
    )
    kind: str = Field(
        min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$", description="The workload's kind, as in its YAML."
    )
    name: str = Field(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN, description="The workload's name.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "/" not in self.api_version and self.kind not in _CORE_KINDS:
            raise break_rule(
                "apiVersion must be group/version for this kind, for example batch/v1 for Job: without a group there "
                f"are only {' and '.join(_CORE_KINDS)}"
            )
        return self


class LabelRequirement(Part):
    """One requirement of a label selector (Kubernetes' LabelSelectorRequirement)."""

    key: str = Field(min_length=1, max_length=317, pattern=_LABEL_NAME, description="The label's name.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label is compared with `values`."
    )
    values: list[Annotated[str, Field(max_length=63, pattern=_LABEL_VALUE)]] | None = Field(
        default=None, max_length=32, description="What it is compared with, for In and NotIn."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.operator in ("Exists", "DoesNotExist")) == bool(self.values):
            raise break_rule("values must be set for In and NotIn, and must not be set for Exists and DoesNotExist")
        return self


class Selector(Part):
    """A label selector (Kubernetes' LabelSelector); an empty one is refused."""

    match_labels: dict[str, Annotated[str, Field(max_length=63, pattern=_LABEL_VALUE)]] | None = Field(
        default=None, max_length=16, description="Labels that must all be there with these values."
    )
    match_expressions: list[LabelRequirement] | None = Field(
        default=None, max_length=16, description="Further requirements, all of which must hold."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.match_labels and not self.match_expressions:
            raise break_rule("matchLabels or matchExpressions must hold something; an empty selector is refused")
        if not all(re.fullmatch(_LABEL_NAME, key) for key in self.match_labels or {}):
            raise break_rule("matchLabels must have label names, for example app or app.kubernetes.io/name")
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

    def text(self) -> str:
        """The selector in short: `app=x,tier In (a, b)`."""
        labels = [f"{key}={value}" for key, value in (self.match_labels or {}).items()]
        expressions = [
            f"{e.key} {e.operator}" + (f" ({', '.join(e.values)})" if e.values else "")
            for e in self.match_expressions or []
        ]
        return ",".join(labels + expressions)


class Target(Part):
    """What to profile: a workload or a label selector."""

    workload: WorkloadReference | None = Field(
        default=None,
        description="A workload by its name. Its pods are found by the labels of its kind, else by owner references: "
        "any kind that owns pods will do.",
    )
    selector: Selector | None = Field(default=None, description="Pods by their labels; an empty selector is refused.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_exactly_one(self, "workload", "selector")
        return self

    def text(self) -> str:
        """What is profiled, in short: `Job/llama` or the selector."""
        if self.workload is not None:
            return f"{self.workload.kind}/{self.workload.name}"
        assert self.selector is not None
        return self.selector.text()
