"""Injection only where the sidecar's image is on every node that a pod may go to: which nodes those are."""

from typing import Any

import pytest
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.nodes import Node, name_in_full, read_node
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from harness.kubernetes.documents.pods_to_inject import SETTINGS

IMAGE = "ghcr.io/fleetprof/sidecar:0.1.0"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(
    name: str,
    *,
    image: bool = False,
    labels: dict[str, str] | None = None,
    taints: tuple[dict[str, str], ...] = (),
    gpus: str = "",
) -> Node:
    images = [{"names": ["docker.io/library/other@sha256:1", "docker.io/library/other:1"]}]
    if image:
        images.append({"names": ["ghcr.io/fleetprof/sidecar@sha256:abc", IMAGE]})
    allocatable = {"cpu": "8", "memory": "32Gi", "hugepages-2Mi": "0"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    document = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"images": images, "allocatable": allocatable},
    }
    return read_node(document, SETTINGS.image)


def judge(nodes: list[Node], **spec: Any) -> tuple[str, str]:
    """(result, why not) of a pod with this spec."""
    pod = {"metadata": {}, "spec": {"containers": [{"name": "train", "image": "x"}], **spec}}
    change = change_pod(pod, NamespaceLimits(), SETTINGS, nodes=nodes)
    assert bool(change.patch) is (change.reason == "")
    return change.reason or "Injected", change.why_not


def require(*expressions: dict[str, Any], kind: str = "matchExpressions") -> dict[str, Any]:
    terms = [{kind: list(expressions)}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_a_pod_gets_the_sidecar_when_every_node_has_its_image() -> None:
    assert judge([node("a", image=True), node("b", image=True)]) == ("Injected", "")


def test_one_node_without_the_image_leaves_the_pod_alone_and_is_named() -> None:
    others = [node(f"n{number}") for number in range(5)]
    reason = "the sidecar's image is not on the list of n0, n1, n2 and 2 more, of 6 nodes that it may go to"
    assert judge([node("a", image=True), *others]) == ("NoImage", reason)


def test_a_pod_for_which_no_node_is_there_yet_is_left_alone() -> None:
    assert judge([node("a", image=True)], nodeSelector={"pool": "gpu"})[0] == "NoImage"


# `good` has the image, `bad` has not: which of the two a pod may go to.
GOOD = {"pool": "gpu", "zone": "a", "generation": "9"}
BAD = {"pool": "cpu", "generation": "7"}


@pytest.mark.parametrize(
    ("spec", "result"),
    [
        ({}, "NoImage"),
        ({"nodeSelector": {"pool": "gpu"}}, "Injected"),
        ({"nodeSelector": {"pool": "cpu"}}, "NoImage"),
        ({"nodeName": "good"}, "Injected"),
        ({"nodeName": "bad"}, "NoImage"),
        ({"affinity": require(expression("pool", "In", "gpu", "tpu"))}, "Injected"),
        ({"affinity": require(expression("pool", "NotIn", "cpu"))}, "Injected"),
        ({"affinity": require(expression("zone", "NotIn", "a"))}, "NoImage"),  # `bad` has no zone, so it fits
        ({"affinity": require(expression("zone", "Exists"))}, "Injected"),
        ({"affinity": require(expression("zone", "DoesNotExist"))}, "NoImage"),
        ({"affinity": require(expression("generation", "Gt", "8"))}, "Injected"),
        ({"affinity": require(expression("generation", "Lt", "8"))}, "NoImage"),
        ({"affinity": require(expression("zone", "Gt", "8"))}, "NoImage"),  # nowhere to go
        ({"affinity": require(expression("pool", "Near", "x"))}, "NoImage"),  # an operator to come rules nothing out
        ({"affinity": require(expression("metadata.name", "In", "good"), kind="matchFields")}, "Injected"),
        ({"affinity": require()}, "NoImage"),  # an empty term fits no node
    ],
)
def test_selectors_rule_nodes_out(spec: dict[str, Any], result: str) -> None:
    assert judge([node("good", image=True, labels=GOOD), node("bad", labels=BAD)], **spec)[0] == result


def test_one_of_several_terms_is_enough() -> None:
    affinity = require(expression("pool", "In", "gpu"))
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms.append({"matchExpressions": [expression("pool", "In", "cpu")]})
    assert judge([node("good", image=True, labels=GOOD), node("bad", labels=BAD)], affinity=affinity)[0] == "NoImage"


@pytest.mark.parametrize(
    ("tolerations", "result"),
    [
        ([], "Injected"),  # it cannot go there
        ([{"operator": "Exists"}], "NoImage"),
        ([{"key": "nvidia.com/gpu", "operator": "Exists"}], "NoImage"),
        ([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}], "Injected"),
        ([{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}], "NoImage"),
        ([{"key": "nvidia.com/gpu", "value": "absent"}], "Injected"),
        ([{"key": "other", "operator": "Exists"}], "Injected"),
    ],
)
def test_taints_keep_pods_off_that_do_not_tolerate_them(tolerations: list[dict[str, str]], result: str) -> None:
    nodes = [node("good", image=True), node("bad", taints=(GPU_TAINT,))]
    assert judge(nodes, tolerations=tolerations)[0] == result


def test_a_taint_that_only_prefers_keeps_nobody_off() -> None:
    taint = GPU_TAINT | {"effect": "PreferNoSchedule"}
    assert judge([node("good", image=True), node("bad", taints=(taint,))])[0] == "NoImage"


def test_a_pod_that_asks_for_gpus_goes_where_some_are() -> None:
    nodes = [node("good", image=True, gpus="8"), node("bad"), node("worse", gpus="0")]
    resources = {"limits": {"nvidia.com/gpu": "8", "cpu": "4"}}
    assert judge(nodes, containers=[{"name": "train", "resources": resources}])[0] == "Injected"
    assert judge(nodes)[0] == "NoImage"


@pytest.mark.parametrize(
    ("image", "listed"),
    [
        (IMAGE, IMAGE),
        ("mirror:5000/a/sidecar", "mirror:5000/a/sidecar:latest"),
        ("localhost/sidecar:1", "localhost/sidecar:1"),
        ("sidecar", "docker.io/library/sidecar:latest"),
        ("acme/sidecar:1", "docker.io/acme/sidecar:1"),
        ("docker.io/sidecar:1", "docker.io/library/sidecar:1"),
        ("ghcr.io/a/sidecar@sha256:1f", "ghcr.io/a/sidecar@sha256:1f"),
        ("ghcr.io/a/sidecar:1@sha256:1f", "ghcr.io/a/sidecar@sha256:1f"),
    ],
)
def test_an_image_is_looked_for_by_the_name_that_container_runtimes_list(image: str, listed: str) -> None:
    assert name_in_full(image) == listed
    assert read_node({"metadata": {"name": "n"}, "status": {"images": [{"names": [listed]}]}}, image).has_image
    assert not read_node({"metadata": {"name": "n"}, "status": {}}, image).has_image
