"""The webhook's process before a real API server: what becomes of pods, and of those who ask for captures."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleetprof_operator.injection.cluster_nodes import ClusterNodes
from fleetprof_operator.kubernetes.cluster import Cluster, make_client
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.documents.pods_to_inject import pods
from harness.kubernetes.webhook_process import RunningWebhook, run_webhook
from harness.waiting import wait_until
from hypothesis import HealthCheck, event, given, settings
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[3]
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
OPTED_IN = {"fleetprof.io/inject": "true"}


class World:
    """The API server with the webhook, and namespaces made as they are needed."""

    def __init__(self, server: ApiServer, webhook: RunningWebhook) -> None:
        self.server = server
        self.metrics = webhook.scrape
        self._count = 0

    def make_namespace(self, labels: dict[str, str]) -> str:
        self._count += 1
        name = f"injection-{self._count}"
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        self.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return f"/api/v1/namespaces/{name}"

    def call(self, method: str, path: str, document: object = None, user: str = "admin") -> dict[str, Any]:
        status, answer = self.server.call(method, path, document, user)
        assert status < 300, answer
        return answer


@pytest.fixture(scope="module")
def world(api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("webhook")
    with run_webhook(folder, api.kubeconfig(), "fleetprof-hub.fleetprof-system.svc:8443") as webhook:
        _register(api, webhook)
        try:
            yield World(api, webhook)
        finally:
            api.call("DELETE", f"{HOOKS}/injection-tests")
            # The tests after these make requests too, and the server forgets the webhook a moment later.
            wait_until(lambda: _takes_requests(api), "requests to be taken without the webhook", 30)


def _takes_requests(api: ApiServer) -> bool:
    request = {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfileRequest", "metadata": {"name": "probe"},
               "spec": {"target": {"selector": {"matchLabels": {"a": "b"}}}, "window": {"iterations": 1}}}  # fmt: skip
    return (
        api.call("POST", "/apis/fleetprof.io/v1alpha1/namespaces/probe/profilerequests?dryRun=All", request)[0] == 201
    )


def _register(api: ApiServer, running: RunningWebhook) -> None:
    def webhook(name: str, path: str, rule: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "name": f"{name}.fleetprof.io",
            "clientConfig": running.address(path),
            "rules": [{**rule, "apiVersions": ["*"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }

    on_pods = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}
    on_requests = {
        "apiGroups": ["fleetprof.io"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["profilerequests"],
    }
    document = {
        "metadata": {"name": "injection-tests"},
        "webhooks": [
            webhook("pods", "/pods", on_pods, failurePolicy="Fail", namespaceSelector={"matchLabels": OPTED_IN}),
            webhook("requests", "/requests", on_requests, failurePolicy="Fail"),
        ],
    }
    assert api.call("POST", HOOKS, document)[0] == 201
    # The configuration takes a moment to be heeded.
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "probe", "labels": OPTED_IN}})
    api.call("POST", "/api/v1/namespaces/probe/serviceaccounts", {"metadata": {"name": "default"}})
    probe = "/api/v1/namespaces/probe/pods?dryRun=All"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    wait_until(lambda: "initContainers" in api.call("POST", probe, pod)[1].get("spec", {}), "the webhook", 30)


def restricted_pod(**container: Any) -> dict[str, Any]:
    security = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    spec = {"containers": [{"name": "train", "image": "x", "securityContext": security, **container}]}
    return {"metadata": {"generateName": "train-"}, "spec": spec}


def test_a_pod_of_a_restricted_namespace_is_admitted_with_the_sidecar(world: World) -> None:
    namespace = world.make_namespace({**OPTED_IN, **RESTRICTED})
    pod = world.call("POST", f"{namespace}/pods", restricted_pod())
    (sidecar,) = pod["spec"]["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("fleetprof", "Always")
    mounts = {mount["mountPath"]: mount["name"] for mount in sidecar["volumeMounts"]}
    # Without our own mount there Kubernetes would have put the API's token into the sidecar as well.
    assert mounts["/var/run/secrets/kubernetes.io/serviceaccount"] == "fleetprof-no-api-token"
    trainer = pod["spec"]["containers"][0]
    assert any(m["mountPath"].startswith("/var/run/secrets/kubernetes.io") for m in trainer["volumeMounts"])
    assert pod["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {"cpu": "2", "memory": "2Gi"}}, "Guaranteed"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({}, "Burstable"),
    ],
)
def test_the_class_of_service_as_the_api_server_sees_it(world: World, resources: dict[str, Any], expected: str) -> None:
    namespace = world.make_namespace(OPTED_IN)
    pod = world.call("POST", f"{namespace}/pods", restricted_pod(resources=resources))
    assert len(pod["spec"]["initContainers"]) == 1
    assert pod["status"]["qosClass"] == expected


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(pods())
def test_a_pod_that_is_valid_without_us_is_valid_with_us(
    namespaces: tuple[World, str, str], pod: dict[str, Any]
) -> None:
    world, plain, injected = namespaces
    without, _ = world.server.call("POST", f"{plain}/pods?dryRun=All", pod)
    status, answer = world.server.call("POST", f"{injected}/pods?dryRun=All", pod)
    assert status == without, answer
    event(f"status {status}")
    if status == 201:
        names = [container["name"] for container in answer["spec"].get("initContainers", [])]
        own_daemon = any(
            entry["name"] == "KINETO_USE_DAEMON" and entry.get("value") != "1"
            for container in pod["spec"]["containers"]
            for entry in container.get("env", [])
        )
        assert "fleetprof" in names or own_daemon


@pytest.fixture(scope="module")
def namespaces(world: World) -> tuple[World, str, str]:
    return world, world.make_namespace({}), world.make_namespace(OPTED_IN)


def test_a_full_quota_costs_the_sidecar_and_never_the_pod(world: World) -> None:
    namespace = world.make_namespace(OPTED_IN)
    hard = {"requests.cpu": "1", "requests.memory": "1Gi"}
    world.call("POST", f"{namespace}/resourcequotas", {"metadata": {"name": "full"}, "spec": {"hard": hard}})
    # What a quota controller does: nothing is used yet.
    path = f"{namespace}/resourcequotas/full/status"
    world.call("PATCH", path, {"status": {"hard": hard, "used": {"requests.cpu": "0", "requests.memory": "0"}}})
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    before = world.metrics()
    pod = world.call("POST", f"{namespace}/pods", restricted_pod(resources=resources))
    assert "initContainers" not in pod["spec"]
    assert 'result="NoRoom"' in world.metrics()
    assert before != world.metrics()


def test_a_limit_range_shapes_the_sidecar_or_leaves_the_pod_alone(world: World) -> None:
    namespace = world.make_namespace(OPTED_IN)
    item = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}, "min": {"cpu": "100m"}}
    world.call("POST", f"{namespace}/limitranges", {"metadata": {"name": "r"}, "spec": {"limits": [item]}})
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    pod = world.call("POST", f"{namespace}/pods", restricted_pod(resources=resources))
    assert pod["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] == "200m"


async def test_the_nodes_that_have_the_image_are_known_and_followed(
    api: ApiServer,
) -> None:
    path = "/api/v1/nodes"
    for name in ("first", "second"):
        taints = [{"key": "gpu", "effect": "NoSchedule"}]
        document = {"metadata": {"name": name, "labels": {"pool": name}}, "spec": {"taints": taints}}
        assert api.call("POST", path, document)[0] == 201
    image = "ghcr.io/fleetprof/sidecar:0.1.0"
    configuration = Configuration()
    await load_kube_config(str(api.kubeconfig()), client_configuration=configuration)
    cluster = Cluster(make_client(configuration, "tests"))
    nodes = ClusterNodes(cluster, image)
    assert nodes.current() is None
    watching = asyncio.create_task(nodes.run())

    async def see(expected: dict[str, bool]) -> None:
        async with asyncio.timeout(30):
            while {node.name: node.has_image for node in nodes.current() or ()} != expected:
                await asyncio.sleep(0.02)

    try:
        await see({"first": False, "second": False})
        status = {"status": {"images": [{"names": [image], "sizeBytes": 1}]}}
        assert api.call("PATCH", f"{path}/first/status", status)[0] == 200
        await see({"first": True, "second": False})
        assert api.call("DELETE", f"{path}/second")[0] == 200
        await see({"first": True})
        (first,) = nodes.current() or ()
        assert (first.labels["pool"], first.taints[0]["key"]) == ("first", "gpu")
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await cluster.close()
        api.call("DELETE", f"{path}/first")


REQUEST = {
    "apiVersion": "fleetprof.io/v1alpha1",
    "kind": "ProfileRequest",
    "metadata": {"name": "five", "annotations": {"fleetprof.io/requested-by": "somebody-else"}},
    "spec": {
        "target": {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}},
        "window": {"iterations": 5},
    },
}


def test_who_asks_for_a_capture_is_noted_and_cannot_be_changed(world: World) -> None:
    namespace = world.make_namespace({})
    name = namespace.rpartition("/")[2]
    role = {
        "metadata": {"name": "asks"},
        "rules": [{"apiGroups": ["fleetprof.io"], "resources": ["*"], "verbs": ["*"]}],
    }
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}"
    world.call("POST", f"{roles}/roles", role)
    subject = {"kind": "User", "name": "guest", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": "asks", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "asks"}, "roleRef": reference, "subjects": [subject]}
    world.call("POST", f"{roles}/rolebindings", binding)
    path = f"/apis/fleetprof.io/v1alpha1/namespaces/{name}/profilerequests"
    made = world.call("POST", path, REQUEST, user="guest")
    assert made["metadata"]["annotations"]["fleetprof.io/requested-by"] == "guest"

    change = {"metadata": {"annotations": {"fleetprof.io/requested-by": "admin"}}}
    status, answer = world.server.call("PATCH", f"{path}/five", change, user="guest")
    assert status == 422
    assert "cannot be changed" in answer["message"]
    kept = world.call("PATCH", f"{path}/five", {"metadata": {"annotations": {"fleetprof.io/requested-by": None}}})
    assert kept["metadata"]["annotations"]["fleetprof.io/requested-by"] == "guest"
    labelled = world.call("PATCH", f"{path}/five", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["annotations"]["fleetprof.io/requested-by"] == "guest"


def test_many_pods_at_once_all_get_their_sidecar(world: World) -> None:
    namespace = world.make_namespace(OPTED_IN)

    async def create_all() -> list[tuple[int, dict[str, Any]]]:
        create = [
            asyncio.to_thread(world.server.call, "POST", f"{namespace}/pods?dryRun=All", restricted_pod())
            for _ in range(40)
        ]
        return await asyncio.gather(*create)

    for status, pod in asyncio.run(create_all()):
        assert status == 201
        assert pod["spec"]["initContainers"][0]["name"] == "fleetprof"
