"""The jobs of its namespace that a policy is about: those of whose pods one has these labels."""

from typing import Annotated

from pydantic import ConfigDict, Field

from fleetprof_api.request.patterns import LABEL_VALUE
from fleetprof_api.request.rules import Rule, rule
from fleetprof_api.request.target import ARE_LABEL_NAMES, Selector, are_label_names

_LabelValue = Annotated[str, Field(max_length=63), LABEL_VALUE]


class JobSelector(Selector):
    """A label selector (Kubernetes' LabelSelector) of pods; an empty one is refused."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    match_labels: (
        Annotated[
            dict[str, _LabelValue],
            Field(max_length=16),
            Rule(
                ARE_LABEL_NAMES,
                "spec.selector.matchLabels must have label names, for example app or app.kubernetes.io/name",
                are_label_names,
            ),
        ]
        | None
    ) = Field(default=None, description="Labels that a pod must all have, with these values.")

    @rule(
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || "
        "(has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        "spec.selector must hold matchLabels or matchExpressions; leave it out for all jobs of the namespace",
    )
    def _is_not_empty(self) -> bool:
        return bool(self.match_labels or self.match_expressions)
