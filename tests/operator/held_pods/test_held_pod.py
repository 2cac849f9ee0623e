"""The pods that wait for their sidecar, since when, and what of such a pod is changed."""

import copy
from typing import Any

import pytest
from fleetprof_api.pods import INJECTED_ANNOTATION, WITHOUT_SIDECAR_ANNOTATION
from fleetprof_operator.held_pods.held_pod import explain, make_patch, read_held
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from harness.kubernetes.documents.pods_to_inject import SETTINGS

SINCE_S = 1_795_859_400
READY = {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": "2026-11-28T09:50:00Z"}
NO_IMAGE = {"reason": "ImagePullBackOff", "message": "Back-off pulling\nimage"}


def held(status: dict[str, Any] | None = None, sidecar: dict[str, Any] | None = None, **metadata: Any) -> Any:
    """A pod as the webhook changed it, on a node whose kubelet cannot pull the sidecar's image."""
    given = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "logger", "image": "log:1"}, TRAINER]}}
    pod: Any = copy.deepcopy(change_pod(given, NamespaceLimits(), SETTINGS).pod)
    pod["metadata"] |= {"namespace": "team", "uid": "u", "resourceVersion": "7"} | metadata
    mine = {"name": "fleetprof", "started": False, "state": {"waiting": NO_IMAGE}} | (sidecar or {})
    pod["status"] = {"phase": "Pending", "conditions": [READY], "initContainerStatuses": [mine]} | (status or {})
    return pod


TRAINER = {"name": "train", "image": "torch:2.15", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


@pytest.mark.parametrize(
    "pod",
    [
        held({"phase": "Running"}),
        held(sidecar={"started": True, "state": {"running": {}}}),
        held({"conditions": []}),  # it waits for a volume or the network, or the kubelet is too old to say
        held({"conditions": [READY | {"status": "False"}]}),
        held({"conditions": [READY | {"lastTransitionTime": "nonsense"}]}),
        held(deletionTimestamp="2026-11-28T09:55:00Z"),
        held(annotations={}),  # of the name alone: a container of the user's own
        held(annotations={INJECTED_ANNOTATION: "1", WITHOUT_SIDECAR_ANNOTATION: "as it did not start"}),
        held() | {"spec": {"initContainers": [{"name": "fleetprof"}], "containers": [TRAINER]}},
        {"metadata": {"name": "p"}},
    ],
)
def test_a_pod_is_left_to_itself(pod: Any) -> None:
    assert read_held(pod) is None


@pytest.mark.parametrize(
    ("waiting", "why"),
    [
        (NO_IMAGE, ": ImagePullBackOff: Back-off pulling image"),
        ({"reason": "PodInitializing"}, ": PodInitializing"),  # a registry that takes the call and answers nothing
        ({"reason": "CreateContainerError", "message": "no room"}, ": CreateContainerError: no room"),
        ({}, ""),
    ],
)
def test_whatever_keeps_a_sidecar_from_starting_counts(waiting: dict[str, Any], why: str) -> None:
    found = read_held(held(sidecar={"state": {"waiting": waiting}}))
    assert found is not None
    assert found.since_unix_ns == SINCE_S * 10**9
    assert explain(found, 120) == f"its sidecar ({SETTINGS.image}) did not start within 120 s{why}"


def test_why_it_goes_on_has_a_bounded_length() -> None:
    found = read_held(held(sidecar={"state": {"waiting": {"reason": "ErrImagePull", "message": "x" * 1000}}}))
    assert found is not None
    assert len(explain(found, 120)) == 300


def test_the_sidecar_gets_the_trainers_image_and_a_note_says_why() -> None:
    found = read_held(held())
    assert found is not None
    assert make_patch(found, "why") == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "replace", "path": "/spec/initContainers/0/image", "value": "torch:2.15"},
        {"op": "add", "path": "/metadata/annotations/fleetprof.io~1without-sidecar", "value": "why"},
    ]
