"""The target of a request: a workload or a label selector."""

import re
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from fleetprof_api.request.part import Part
from fleetprof_api.request.patterns import GROUP_VERSION, KIND, LABEL_NAME, LABEL_VALUE, NAME
from fleetprof_api.request.rules import Rule, rule

_CORE_KINDS: Final = ("Pod", "ReplicationController")  # all that own pods or are pods without an API group
_LabelValue = Annotated[str, Field(max_length=63), LABEL_VALUE]


def are_label_names(labels: dict[str, str]) -> bool:
    """Tells whether each key of a selector's labels is a label's name."""
    return all(re.fullmatch(LABEL_NAME.regex, key) for key in labels)


ARE_LABEL_NAMES: Final = f"self.all(key, {LABEL_NAME.matches('key')})"
"""The same for the API server."""


class WorkloadReference(Part):
    """A workload by reference; its ranks are found by the labels of its kind or by owner references."""

    api_version: Annotated[str, GROUP_VERSION] = Field(
        min_length=2, max_length=317, description="API group and version of the workload's kind."
    )
    kind: Annotated[str, KIND] = Field(min_length=1, max_length=63, description="The workload's kind, as in its YAML.")
    name: Annotated[str, NAME] = Field(min_length=1, max_length=253, description="The workload's name.")

    @rule(
        f"self.apiVersion.contains('/') || self.kind in {list(_CORE_KINDS)}",
        "spec.target.workload.apiVersion must be group/version for this kind, for example batch/v1 for Job: without a "
        f"group there are only {' and '.join(_CORE_KINDS)}",
        field="apiVersion",
    )
    def _has_a_group_or_is_of_the_core(self) -> bool:
        return "/" in self.api_version or self.kind in _CORE_KINDS


class LabelRequirement(Part):
    """One requirement of a label selector (Kubernetes' LabelSelectorRequirement)."""

    key: Annotated[str, LABEL_NAME] = Field(min_length=1, max_length=317, description="The label's name.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label is compared with `values`."
    )
    values: list[_LabelValue] | None = Field(
        default=None, max_length=32, description="The values to compare with, for In and NotIn."
    )

    @rule(
        "(self.operator in ['Exists', 'DoesNotExist']) != (has(self.values) && size(self.values) > 0)",
        "values must be set for In and NotIn, and must not be set for Exists and DoesNotExist",
    )
    def _has_values_where_they_count(self) -> bool:
        return (self.operator in ("Exists", "DoesNotExist")) != bool(self.values)


class Selector(Part):
    """A label selector (Kubernetes' LabelSelector); an empty one is refused."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    match_labels: (
        Annotated[
            dict[str, _LabelValue],
            Field(max_length=16),
            Rule(
                ARE_LABEL_NAMES,
                "spec.target.selector.matchLabels must have label names, for example app or app.kubernetes.io/name",
                are_label_names,
            ),
        ]
        | None
    ) = Field(default=None, description="Labels that a pod must all have, with these values.")
    match_expressions: list[LabelRequirement] | None = Field(
        default=None, max_length=16, description="Further requirements, all of which must hold."
    )

    @rule(
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || "
        "(has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        "spec.target.selector must hold matchLabels or matchExpressions; an empty selector is refused",
    )
    def _is_not_empty(self) -> bool:
        return bool(self.match_labels or self.match_expressions)

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
    """The target to profile: a workload or a label selector."""

    workload: WorkloadReference | None = Field(
        default=None,
        description="A workload by its name. Its pods are found by the labels of its kind, else by owner references: "
        "any kind that owns pods will do.",
    )
    selector: Selector | None = Field(default=None, description="Pods by their labels; an empty selector is refused.")

    @rule(
        "has(self.workload) != has(self.selector)",
        "exactly one of spec.target.workload and spec.target.selector must be set",
    )
    def _is_one(self) -> bool:
        return (self.workload is None) != (self.selector is None)

    def text(self) -> str:
        """The target in short: `Job/llama` or the selector."""
        if self.workload is not None:
            return f"{self.workload.kind}/{self.workload.name}"
        assert self.selector is not None
        return self.selector.text()
