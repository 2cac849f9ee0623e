"""Pods that are found by who owns their owner, where no label says whose they are."""

from collections.abc import Callable

import pytest
from cluster.images.building import TRAINER
from scene.api import Api, wait_until
from scene.installation import Installation
from scene.request import JobRequest
from scene.store import StoreInCluster

pytestmark = pytest.mark.cluster

NAME = "served"


@pytest.fixture
def deployment(api: Api, installation: Installation, namespaces: Callable[..., str]) -> str:
    """A Deployment of one pod without a sidecar, which its ReplicaSet owns; the namespace."""
    namespace = namespaces("e2e-owners")
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": TRAINER, "command": ["sleep", "600"], "securityContext": restricted}
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    pod = {
        "metadata": {"labels": {"app": NAME}},
        "spec": {"containers": [container], "securityContext": security, "terminationGracePeriodSeconds": 0},
    }
    spec = {"selector": {"matchLabels": {"app": NAME}}, "template": pod}
    metadata = {"name": NAME, "namespace": namespace}
    api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    wait_until(
        lambda: [p for p in api.list("Pod", namespace) if p["status"].get("phase") == "Running"],
        lambda: f"the Deployment's pod: {api.explain(namespace)}",
    )
    return namespace


def test_a_deployment_s_pods_are_found_and_the_request_says_what_they_lack(
    api: Api, store: StoreInCluster, deployment: str
) -> None:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}
    request = JobRequest(api, store, deployment, "served", NAME, {"target": {"workload": workload}})

    request.apply()
    request.await_end()

    assert request.outcome() == ("False", "NotInjected"), request.describe()
    assert f"pod {NAME}-" in request.message()
