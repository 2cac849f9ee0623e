"""A namespace's ResourceQuotas and LimitRanges before a pod with the sidecar in it."""

from typing import Any

import pytest
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from harness.kubernetes.documents.pods_to_inject import Inject

SMALL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
EQUAL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> NamespaceLimits:
    document = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used or {}}}
    return NamespaceLimits(quotas=[document])


def limit_range(**item: Any) -> NamespaceLimits:
    return NamespaceLimits(limit_ranges=[{"metadata": {"name": "r"}, "spec": {"limits": [item]}}])


def train(resources: dict[str, Any]) -> dict[str, Any]:
    return {"name": "train", "image": "train:1", "resources": resources}


@pytest.mark.parametrize(
    ("resources", "limits", "reason"),
    [
        (SMALL, NamespaceLimits(), ""),
        (SMALL, quota({"requests.cpu": "1020m"}), ""),
        (SMALL, quota({"requests.cpu": "1"}), "ResourceQuota q has 1 of requests.cpu left"),
        (SMALL, quota({"cpu": "10"}, {"cpu": "9"}), "has 1 of cpu left, the pod with the sidecar needs 1.020"),
        (SMALL, quota({"limits.memory": "2Gi"}), "limits.memory left"),
        (SMALL, quota({"pods": "1", "requests.nvidia.com/gpu": "0"}), ""),
        (SMALL, quota({"requests.cpu": "1"}, scopes=["BestEffort"]), ""),
        (SMALL, quota({"requests.cpu": "1"}, scopes=["Terminating"]), ""),
        (SMALL, quota({"requests.cpu": "1"}, scopes=["NotTerminating"]), "requests.cpu left"),
        (
            {},
            quota({"limits.cpu": "8"}, scopes=["NotBestEffort"]),
            "and container train states no limits.cpu",
        ),
        (
            SMALL,
            quota(
                {"requests.cpu": "1"},
                scopeSelector={
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                },
            ),
            "",
        ),
        (SMALL, limit_range(type="Container", max={"memory": "128Mi"}), "the sidecar has a limit of"),
        (SMALL, limit_range(type="Container", min={"cpu": "1"}), "the sidecar asks for"),
        (SMALL, limit_range(type="Pod", max={"cpu": "2"}), "the pod with the sidecar has a limit of"),
        (SMALL, limit_range(type="PersistentVolumeClaim", max={"storage": "1Gi"}), ""),
    ],
)
def test_a_pod_that_would_be_refused_for_the_sidecars_sake_is_left_alone(
    inject: Inject, resources: Any, limits: Any, reason: str
) -> None:
    change = inject(train(resources), limits=limits)
    assert bool(change.patch) is not bool(reason)
    assert reason in change.why_not
    assert [change.why_not in text for text in change.warnings] == ([True] if reason else [])


@pytest.mark.parametrize(
    ("limits", "cpu"),
    [
        (NamespaceLimits(), ("20m", "1")),
        (limit_range(type="Container", maxLimitRequestRatio={"cpu": "4"}), ("200m", "200m")),
        (limit_range(type="Container", min={"cpu": "100m"}), ("200m", "200m")),
        (quota({"limits.cpu": "2500m"}), ("200m", "200m")),
    ],
)
def test_the_first_resources_that_fit_are_taken(inject: Inject, limits: Any, cpu: Any) -> None:
    resources = inject(train(SMALL), limits=limits).pod["spec"]["initContainers"][0]["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["cpu"]) == cpu


def test_a_guaranteed_pod_stays_so(inject: Inject) -> None:
    resources = inject(train(EQUAL)).pod["spec"]["initContainers"][0]["resources"]
    assert resources["requests"] == resources["limits"] == {"cpu": "200m", "memory": "384Mi"}


def test_a_pod_that_limits_its_storage_gets_room_for_the_traces(inject: Inject) -> None:
    """Its limit is the sum of its containers' limits, and the kubelet evicts it above that."""
    limited = {"limits": {"ephemeral-storage": "10Gi"}}
    resources = inject(train(limited)).pod["spec"]["initContainers"][0]["resources"]
    assert resources["limits"]["ephemeral-storage"] == "8Gi"
    assert resources["requests"]["ephemeral-storage"] == "64Mi"
    assert "ephemeral-storage" not in inject(train(SMALL)).pod["spec"]["initContainers"][0]["resources"]["limits"]


@pytest.mark.parametrize(
    ("own", "pod_level", "reason"),
    [
        (SMALL, {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}}, ""),
        (SMALL, {"requests": {"cpu": "1"}}, "the pod's own resources.requests.cpu of 1 leave no room"),
        ({}, {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}}, "the sidecar's limits.cpu of 1 are more than"),
    ],
)
def test_pod_level_resources_must_have_room_for_the_sidecar(
    inject: Inject, own: Any, pod_level: Any, reason: str
) -> None:
    change = inject(train(own), resources=pod_level)
    assert bool(change.patch) is not bool(reason)
    assert reason in change.why_not
