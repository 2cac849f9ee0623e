"""The pods of other projects' workloads, by those projects' own kinds and labels, on a real API server.

Each workload is made as its CRD wants it, and each pod with the label or the owners that its controller gives it: the
labels' names are read from the controllers' source. The controllers themselves do not run.
"""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from fleetprof_operator.kubernetes.workloads import LABELS
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.foreign_kinds import (
    JOBSET,
    KUBERAY,
    LEADER_WORKER_SET,
    MPI_OPERATOR,
    TRAINING_OPERATOR,
    VOLCANO,
    install_kinds,
    read_constant,
)
from harness.kubernetes.request_ground import RequestGround, condition, message

pytestmark = pytest.mark.cluster

CONTAINER = {"name": "trainer", "image": "x"}
POD = {"spec": {"containers": [CONTAINER]}}
JOB = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
REPLICAS = {"replicas": 1, "template": POD}
RAY = {"headGroupSpec": {"rayStartParams": {}, "template": POD}}

SOURCES = {
    ("jobset.x-k8s.io", "JobSet"): (JOBSET, "api/jobset/v1alpha2/jobset_types.go", "JobSetNameKey"),
    # A TrainJob makes a JobSet of its own name.
    ("trainer.kubeflow.org", "TrainJob"): (JOBSET, "api/jobset/v1alpha2/jobset_types.go", "JobSetNameKey"),
    ("kubeflow.org", "PyTorchJob"): (TRAINING_OPERATOR, "pkg/apis/kubeflow.org/v1/common_types.go", "JobNameLabel"),
    ("kubeflow.org", "MPIJob"): (MPI_OPERATOR, "pkg/apis/kubeflow/v2beta1/constants.go", "JobNameLabel"),
    ("ray.io", "RayCluster"): (KUBERAY, "controllers/ray/utils/constant.go", "RayClusterLabelKey"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        LEADER_WORKER_SET,
        "api/leaderworkerset/v1/leaderworkerset_types.go",
        "SetNameLabelKey",
    ),
    ("batch.volcano.sh", "Job"): (VOLCANO, "pkg/apis/batch/v1alpha1/labels.go", "JobNameKey"),
}


@pytest.mark.parametrize("kind", SOURCES, ids=[f"{kind}.{group}" for group, kind in SOURCES])
def test_a_label_is_the_one_that_the_controller_gives(kind: tuple[str, str]) -> None:
    assert LABELS[kind] == read_constant(*SOURCES[kind])


def test_every_label_but_kubernetes_own_has_a_source() -> None:
    assert LABELS.keys() - SOURCES.keys() == {("batch", "Job")}


@dataclass(frozen=True)
class Workload:
    """A workload of one kind. Its pod is that of `below`, where its controller makes another object first."""

    api_version: str
    plural: str
    kind: str
    spec: Any
    below: "Workload | None" = None

    def make(self, ground: RequestGround, name: str, owners: list[Any]) -> tuple[str, list[Any]]:
        """Creates it and what is below; the label selector's name and value, and the owners, of its pods."""
        made = ground.must(
            "POST",
            f"/apis/{self.api_version}/namespaces/{ground.namespace}/{self.plural}?fieldValidation=Strict",
            {
                "apiVersion": self.api_version,
                "kind": self.kind,
                "metadata": {"name": name, "ownerReferences": owners},
                "spec": self.spec,
            },
        )
        owner = {"apiVersion": self.api_version, "kind": self.kind, "name": name, "uid": made["metadata"]["uid"]}
        owners = [owner | {"controller": True}]
        return self.below.make(ground, f"{name}-x7k2p", owners) if self.below else (name, owners)

    def label_pods(self, name: str) -> dict[str, str]:
        """The labels by which the controller knows its pods."""
        kind = self.below or self
        label = LABELS.get((kind.api_version.partition("/")[0], kind.kind))
        return {label: name} if label else {}


REPLICA_SET = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **POD}}
RAY_CLUSTER = Workload("ray.io/v1", "rayclusters", "RayCluster", RAY)
THEIRS = [
    Workload("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet",
             {"replicatedJobs": [{"name": "w", "template": {"spec": JOB}}]}),
    Workload("trainer.kubeflow.org/v1alpha1", "trainjobs", "TrainJob", {"runtimeRef": {"name": "torch"}}),
    Workload("kubeflow.org/v1", "pytorchjobs", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": REPLICAS}}),
    Workload("kubeflow.org/v2beta1", "mpijobs", "MPIJob", {"mpiReplicaSpecs": {"Worker": REPLICAS}}),
    RAY_CLUSTER,
    Workload("ray.io/v1", "rayjobs", "RayJob", {"entrypoint": "x", "rayClusterSpec": RAY}, RAY_CLUSTER),
    Workload("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet",
             {"leaderWorkerTemplate": {"size": 1, "workerTemplate": POD}}),
]  # fmt: skip
OURS = [
    Workload("apps/v1", "statefulsets", "StatefulSet", {**REPLICA_SET, "serviceName": "s"}),
    Workload("apps/v1", "deployments", "Deployment", REPLICA_SET,
             Workload("apps/v1", "replicasets", "ReplicaSet", REPLICA_SET)),
]  # fmt: skip


@pytest.mark.usefixtures("kinds")
async def test_the_pods_of_each_kind_are_found_and_no_others(ground: RequestGround) -> None:
    workloads = {f"the-{each.kind.lower()}": each for each in THEIRS + OURS}
    for name, workload in workloads.items():
        last, owners = workload.make(ground, name, [])
        ground.add_pod(f"pod-{name}", injected=False, labels=workload.label_pods(last), ownerReferences=owners)
    for name, workload in workloads.items():
        target = {"apiVersion": workload.api_version, "kind": workload.kind, "name": name}
        ground.ask(name, target={"workload": target})

    ended = {name: await ground.until_finished(name) for name in workloads}

    assert {name: condition(status) for name, status in ended.items()} == dict.fromkeys(
        workloads, ("False", "NotInjected")
    )
    named = {name: re.findall(r"pod-[a-z-]+", message(status)) for name, status in ended.items()}
    assert named == {name: [f"pod-{name}"] for name in workloads}


@pytest.fixture(scope="module")
def kinds(api: ApiServer) -> None:
    install_kinds(api, *(workload.kind for workload in THEIRS))
