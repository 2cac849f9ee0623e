"""From a request's target to the query that finds its pods: labels per known kind, owner references otherwise.

Sources of the labels: Kubernetes (Job), JobSet, Kubeflow Trainer (a TrainJob makes a JobSet of its own name), Kubeflow
training operator and MPI operator, KubeRay, LeaderWorkerSet, Volcano.

Guarantees: pure; every target has a query, and a name that cannot be a label's value is looked for by owner.
"""

import re
from dataclasses import dataclass
from typing import Final

from fleetprof_api.request import Selector, Target, WorkloadReference

LABELS: Final = {
    ("batch", "Job"): "batch.kubernetes.io/job-name",
    ("jobset.x-k8s.io", "JobSet"): "jobset.sigs.k8s.io/jobset-name",
    ("trainer.kubeflow.org", "TrainJob"): "jobset.sigs.k8s.io/jobset-name",
    ("kubeflow.org", "PyTorchJob"): "training.kubeflow.org/job-name",
    ("kubeflow.org", "MPIJob"): "training.kubeflow.org/job-name",
    ("ray.io", "RayCluster"): "ray.io/cluster",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkerset.sigs.k8s.io/name",
    ("batch.volcano.sh", "Job"): "volcano.sh/job-name",
}
"""(API group, kind) → the label of its pods that holds its name. Versions of one group agree."""

_LABEL_VALUE: Final = re.compile(r"[a-z0-9]([-a-z0-9_.]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodQuery:
    """The pods that are meant: those of one of the three. With `owner`, each leads to it by owner references."""

    selector: Selector | None = None
    name: str = ""
    owner: WorkloadReference | None = None

    @property
    def label_selector(self) -> str:
        """As a query's `labelSelector`."""
        return "" if self.selector is None else format_selector(self.selector)

    @property
    def field_selector(self) -> str:
        """As a query's `fieldSelector`."""
        return self.name and f"metadata.name={self.name}"


def find_query(target: Target) -> PodQuery:
    """The query of a target's pods within its namespace."""
    if target.selector is not None:
        return PodQuery(selector=target.selector)
    workload = target.workload
    assert workload is not None
    group = workload.api_version.rpartition("/")[0]
    if (group, workload.kind) == ("", "Pod"):
        return PodQuery(name=workload.name)
    label = LABELS.get((group, workload.kind))
    if label is None or not _LABEL_VALUE.fullmatch(workload.name):
        return PodQuery(owner=workload)
    return PodQuery(selector=Selector(match_labels={label: workload.name}))


def format_selector(selector: Selector) -> str:
    """A LabelSelector in the form of a query's `labelSelector`."""
    terms = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    for requirement in selector.match_expressions or []:
        values = ",".join(requirement.values or [])
        match requirement.operator:
            case "In":
                terms.append(f"{requirement.key} in ({values})")
            case "NotIn":
                terms.append(f"{requirement.key} notin ({values})")
            case "Exists":
                terms.append(requirement.key)
            case "DoesNotExist":
                terms.append(f"!{requirement.key}")
    return ",".join(terms)
