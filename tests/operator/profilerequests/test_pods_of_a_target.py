"""From a target to its pods, as tables: which query, which owners, and why a pod does not run."""

from typing import Any, cast

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_api.request import Target, WorkloadReference
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.kubernetes.owners import MAX_DEPTH, CannotFollow, Owners
from fleetprof_operator.kubernetes.pod_trouble import explain
from fleetprof_operator.kubernetes.workloads import PodQuery, find_query


def workload(api_version: str, kind: str, name: str = "llama") -> WorkloadReference:
    return WorkloadReference(api_version=api_version, kind=kind, name=name)


@pytest.mark.parametrize(
    ("api_version", "kind", "label"),
    [
        ("batch/v1", "Job", "batch.kubernetes.io/job-name"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "jobset.sigs.k8s.io/jobset-name"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", "jobset.sigs.k8s.io/jobset-name"),
        ("kubeflow.org/v1", "PyTorchJob", "training.kubeflow.org/job-name"),
        ("kubeflow.org/v1", "MPIJob", "training.kubeflow.org/job-name"),
        ("kubeflow.org/v2beta1", "MPIJob", "training.kubeflow.org/job-name"),
        ("ray.io/v1", "RayCluster", "ray.io/cluster"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name"),
        ("batch.volcano.sh/v1alpha1", "Job", "volcano.sh/job-name"),
    ],
)
def test_a_known_kind_has_its_label(api_version: str, kind: str, label: str) -> None:
    target = Target(workload=workload(api_version, kind))
    assert find_query(target).label_selector == f"{label}=llama"


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"), ("ray.io/v1", "RayJob"), ("example.com/v1", "Job"),
     ("v1", "ReplicationController")],
)  # fmt: skip
def test_any_other_kind_is_followed_by_owners(api_version: str, kind: str) -> None:
    reference = workload(api_version, kind)
    assert find_query(Target(workload=reference)) == PodQuery(owner=reference)


def test_a_pod_is_its_own_target_and_a_long_name_no_label() -> None:
    assert find_query(Target(workload=workload("v1", "Pod"))) == PodQuery(name="llama")
    long = workload("batch/v1", "Job", "x" * 64)
    assert find_query(Target(workload=long)) == PodQuery(owner=long)


def test_a_selector_is_asked_for_as_it_is_written() -> None:
    target = Target.model_validate({"selector": {"matchLabels": {"app": "llama", "tier": "a"}, "matchExpressions": [
        {"key": "k", "operator": "In", "values": ["x", "y"]},
        {"key": "n", "operator": "NotIn", "values": ["z"]},
        {"key": "e", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"}]}})  # fmt: skip
    assert find_query(target).label_selector == "app=llama,tier=a,k in (x,y),n notin (z),e,!d"


# ---------------------------------------------------------------- owners


def owner(kind: str, name: str, *, version: str = "example.com/v1", uid: str = "", controller: bool = True) -> Any:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid or f"{kind}/{name}", "controller": controller}


class FakeApi:
    """Answers GETs from a table of `kind/name` → owner references; counts what is read."""

    def __init__(self, objects: dict[str, list[Any]], refused: dict[str, int] | None = None) -> None:
        self.objects = objects
        self.refused = refused or {}
        self.kinds = "ABCD"
        self.read: list[str] = []

    async def get(self, path: str, *, metadata_only: bool = False) -> Any:
        parts = path.split("/")
        if "namespaces" not in parts:
            return {"resources": [{"kind": k, "name": f"{k.lower()}s"} for k in self.kinds] + [
                {"kind": "A", "name": "as/status"}]}  # fmt: skip
        assert metadata_only
        kind, name = parts[-2][:-1].upper(), parts[-1]
        self.read.append(f"{kind}/{name}")
        if code := self.refused.get(f"{kind}/{name}", 0 if f"{kind}/{name}" in self.objects else 404):
            raise ApiRefused(code, "", "no")
        return {"metadata": {"uid": f"{kind}/{name}", "ownerReferences": self.objects[f"{kind}/{name}"]}}


TARGET = workload("example.com/v1", "D", "llama")
UP = owner("D", "llama")


@pytest.mark.parametrize(
    ("references", "objects", "leads", "reads"),
    [
        ([], {}, False, []),
        ([UP], {}, True, []),  # a StatefulSet's own pods need no read
        ([owner("D", "llama", version="example.com/v2")], {}, True, []),  # versions of one group are one kind
        ([owner("D", "llama", version="other.com/v1")], {}, False, ["D/llama"]),
        ([owner("A", "x")], {"A/x": [UP]}, True, ["A/x"]),
        ([owner("A", "x")], {"A/x": [owner("B", "y")], "B/y": [UP]}, True, ["A/x", "B/y"]),
        ([owner("A", "x")], {"A/x": []}, False, ["A/x"]),
        ([owner("A", "x", controller=False)], {"A/x": [UP]}, False, []),
        ([owner("A", "gone")], {}, False, ["A/gone"]),
        ([owner("A", "x", uid="replaced")], {"A/x": [UP]}, False, ["A/x"]),
        ([owner("A", "x")], {"A/x": [owner("B", "y")], "B/y": [owner("A", "x")]}, False, ["A/x", "B/y"]),
        ([owner("Z", "unknown-kind")], {}, False, []),
    ],
)  # fmt: skip
async def test_owners_are_followed_upwards(references: Any, objects: Any, leads: bool, reads: list[str]) -> None:
    api = FakeApi(objects)
    owners = Owners(cast("Cluster", api), "team")
    assert await owners.lead_to(references, TARGET) is leads
    assert await owners.lead_to(references, TARGET) is leads
    assert api.read == reads  # each once, however many pods it has


async def test_a_kind_that_is_installed_meanwhile_is_found() -> None:
    api = FakeApi({"A/x": [], "E/y": [UP]})
    owners = Owners(cast("Cluster", api), "team")
    assert await owners.lead_to([owner("A", "x")], TARGET) is False
    api.kinds += "E"
    assert await owners.lead_to([owner("E", "y")], TARGET) is True


async def test_the_way_upwards_is_bounded() -> None:
    chain = {f"A/{n}": [owner("A", str(n + 1))] for n in range(100)}
    api = FakeApi(chain)
    assert await Owners(cast("Cluster", api), "team").lead_to([owner("A", "0")], TARGET) is False
    assert len(api.read) == MAX_DEPTH


async def test_a_right_that_is_missing_is_named() -> None:
    api = FakeApi({"A/x": []}, {"A/x": 403})
    with pytest.raises(CannotFollow, match=r"may not read A x of example\.com/v1, which owns pods.*: grant it `get`"):
        await Owners(cast("Cluster", api), "team").lead_to([owner("A", "x")], TARGET)


# ---------------------------------------------------------------- troubles


def waiting(reason: str, message: str = "", name: str = "trainer", **last: Any) -> Any:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, "lastState": last}


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({}, ""),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, ""),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
         "not scheduled: Unschedulable: 0/3"),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
         "not scheduled: SchedulingGated"),
        ({"containerStatuses": [waiting("ContainerCreating")]}, ""),
        ({"containerStatuses": [waiting("ImagePullBackOff", "Back-off pulling\n x")]},
         "container trainer: ImagePullBackOff: Back-off pulling x"),
        ({"initContainerStatuses": [waiting("CrashLoopBackOff", name="fleetprof", terminated={"exitCode": 3})],
          "containerStatuses": [waiting("PodInitializing")]},
         "container fleetprof: CrashLoopBackOff: it ended with code 3"),
        ({"containerStatuses": [waiting("X", "y" * 1000)]}, f"container trainer: X: {'y' * 277}…"),
        ({"conditions": None, "containerStatuses": None}, ""),
    ],
)  # fmt: skip
def test_why_a_pod_does_not_run(status: Any, says: str) -> None:
    assert explain(status) == says
