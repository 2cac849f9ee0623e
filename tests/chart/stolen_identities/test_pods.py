"""The operator's identity and pods: those that wait for their sidecar go on without, and nothing else."""

import asyncio
import itertools
import re
import time
from collections.abc import Callable
from typing import Any, Final

import pytest
from fleetprof_api.pods import INJECTED_ANNOTATION, WITHOUT_SIDECAR_ANNOTATION
from fleetprof_operator.held_pods.patience import Patience
from fleetprof_operator.kubernetes.cluster import Cluster, make_client
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.stolen_identities import DENIED, OPERATOR, POLICIES, TEAM, Json, must
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config

pytestmark = pytest.mark.cluster

_NUMBERS: Final = itertools.count()
SECOND_NS: Final = 10**9
NO_IMAGE = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
TRAINER = {"name": "train", "image": "torch:2.15", "volumeMounts": [{"name": "fleetprof", "mountPath": "/x"}]}


def make_pod(server: ApiServer, *, node: str = "n", phase: str = "Pending", **metadata: Any) -> str:
    """The path of a pod as the webhook changed it, whose kubelet cannot pull the sidecar's image since now."""
    name = f"held-{next(_NUMBERS)}"
    pod = {
        "metadata": {"name": name, "labels": {"a": "b"}, "annotations": {INJECTED_ANNOTATION: "1"}} | metadata,
        "spec": {
            "nodeName": node,
            "initContainers": [{"name": "fleetprof", "image": "nowhere/sidecar:1", "restartPolicy": "Always"}],
            "containers": [TRAINER, {"name": "logger", "image": "log:1"}],
            "volumes": [{"name": "fleetprof", "emptyDir": {}}],
        },
    }
    must(server, "POST", f"{TEAM}/pods", pod)
    sidecar = {"name": "fleetprof", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "started": False}
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    status = {
        "phase": phase,
        "conditions": [{"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": at}],
        "initContainerStatuses": [sidecar | {"state": {"waiting": NO_IMAGE}}],
    }
    must(server, "PATCH", f"{TEAM}/pods/{name}/status", {"status": status})
    return f"{TEAM}/pods/{name}"


async def take_turns(server: ApiServer, after_s: int, until: Callable[[], bool]) -> None:
    """The operator's turns in its own name, as of that many seconds later."""
    configuration = Configuration()
    await load_kube_config(config_file=str(server.kubeconfig()), client_configuration=configuration)
    client = make_client(configuration, "fleetprof-operator")
    client.default_headers["Impersonate-User"] = f"system:serviceaccount:{OPERATOR}"
    cluster = Cluster(client)
    released: list[None] = []
    patience = Patience(
        cluster,
        120,
        namespaces=[TEAM.rpartition("/")[2]],
        serves=lambda body: True,
        on_release=lambda: released.append(None),
        clock=lambda: time.time_ns() + after_s * SECOND_NS,
    )
    running = asyncio.create_task(patience.run())
    try:
        async with asyncio.timeout(120):
            while not until():
                await patience.release()
                await asyncio.sleep(0.1)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await cluster.close()


async def test_a_pod_whose_sidecar_has_not_started_in_time_goes_on_without(server: ApiServer) -> None:
    early, running, path = make_pod(server), make_pod(server, phase="Running"), make_pod(server)
    note = {"metadata": {"annotations": {WITHOUT_SIDECAR_ANNOTATION: "already"}}}

    def find_note() -> str:
        annotations: dict[str, str] = must(server, "GET", path)["metadata"]["annotations"]
        return annotations.get(WITHOUT_SIDECAR_ANNOTATION, "")

    must(server, "PATCH", early, note)
    await take_turns(server, 200, lambda: bool(find_note()))
    why = "its sidecar (nowhere/sidecar:1) did not start within 120 s: ImagePullBackOff: Back-off pulling image"
    assert find_note() == why
    images = {p: must(server, "GET", p)["spec"]["initContainers"][0]["image"] for p in (path, early, running)}
    assert images == {path: "torch:2.15", early: "nowhere/sidecar:1", running: "nowhere/sidecar:1"}
    events = must(server, "GET", f"{TEAM}/events")["items"]
    (event,) = (e for e in events if e["involvedObject"]["name"] == path.rpartition("/")[2])
    assert (event["reason"], event["involvedObject"]["kind"], event["involvedObject"]["apiVersion"]) == (
        "WithoutSidecar",
        "Pod",
        "v1",
    )
    assert event["message"] == f"goes on without its sidecar, and cannot be captured: {why}"


async def test_before_that_it_waits(server: ApiServer) -> None:
    path, turns = make_pod(server), itertools.count()
    await take_turns(server, 100, lambda: next(turns) > 20)
    assert must(server, "GET", path)["spec"]["initContainers"][0]["image"] == "nowhere/sidecar:1"


def first_image(image: str) -> list[Json]:
    return [{"op": "replace", "path": "/spec/initContainers/0/image", "value": image}]


def add(path: str, value: object) -> list[Json]:
    return [{"op": "add", "path": path, "value": value}]


EVERYWHERE = {"operator": "Exists"}
FORBIDDEN: Final[dict[str, list[Json]]] = {
    "another image": first_image("evil.example/x"),
    "the trainer's image": add("/spec/containers/0/image", "log:1"),
    "a label": add("/metadata/labels/fleetprof.io~1inject", "true"),
    "no labels": [{"op": "remove", "path": "/metadata/labels"}],
    "a finalizer": add("/metadata/finalizers", ["example.com/x"]),
    "an owner": add("/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]),
    "another annotation": add("/metadata/annotations/x", "y"),
    "a changed annotation": add("/metadata/annotations/fleetprof.io~1injected", "y"),
    "no annotation": [{"op": "remove", "path": "/metadata/annotations/fleetprof.io~1injected"}],
    "a toleration": add("/spec/tolerations/-", EVERYWHERE),
    "a deadline": add("/spec/activeDeadlineSeconds", 1),
}


@pytest.mark.attack
@pytest.mark.parametrize("patch", FORBIDDEN.values(), ids=FORBIDDEN)
def test_it_changes_nothing_else_of_a_pod(patch: list[Json], server: ApiServer) -> None:
    path = make_pod(server)
    kind = "application/json-patch+json"
    allowed = first_image("log:1") + add("/metadata/annotations/fleetprof.io~1without-sidecar", "x")
    for operations, denied in ((patch, True), ([*allowed, *patch], True), (allowed, False)):
        status, answer = server.call("PATCH", f"{path}?dryRun=All", operations, account=OPERATOR, kind=kind)
        assert (status in DENIED) == denied, answer
        assert not denied or "the operator" in answer["message"], answer


@pytest.mark.attack
@pytest.mark.parametrize(
    "pod", [{"phase": "Running"}, {"annotations": {"a": "b"}}, {"annotations": None}], ids=["running", "noted", "bare"]
)
def test_it_changes_no_pod_that_runs_or_has_no_sidecar(pod: Json, server: ApiServer) -> None:
    path, kind = make_pod(server, **pod), "application/json-patch+json"
    status, answer = server.call("PATCH", path, first_image("log:1"), account=OPERATOR, kind=kind)
    assert status in DENIED, answer
    assert "wait for their sidecar" in answer["message"], answer


def test_the_policy_knows_every_field_that_this_api_server_lets_anybody_change(server: ApiServer) -> None:
    path = make_pod(server)
    _, answer = server.call("PATCH", path, {"spec": {"hostname": "x"}})
    listed = answer["message"].partition("other than ")[2].partition("\n")[0]
    fields = set(re.findall(r"spec\.[A-Za-z]+", listed))
    assert len(fields) >= 5, answer
    policy = must(server, "GET", f"{POLICIES}/fleetprof-pods")
    assert {field for field in fields if f"{field}:" not in str(policy["spec"]["validations"])} == set()
    assert "type checking" not in str(policy.get("status")).lower()
