"""The chart's network policies where something enforces them: captures work, and who has no business is refused."""

import json
from collections.abc import Callable, Iterator

import pytest
from cluster.choice import Cluster
from cluster.images.building import TRAINER
from cluster.local.local_cluster import LocalCluster
from scene.api import Api, Object, wait_until
from scene.installation import NAMESPACE, Installation
from scene.request import JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch, pytest.mark.nightly]

PORT = 9999
LISTEN = f"import http.server; http.server.HTTPServer(('', {PORT}), http.server.BaseHTTPRequestHandler).serve_forever()"
# A packet that a policy drops is never answered.
DIAL = """
import json, socket, sys
def reaches(host, port):
    try:
        socket.create_connection((host, port), timeout=4).close()
        return True
    except OSError:
        return False
print(json.dumps([reaches(*address) for address in json.loads(sys.argv[1])]))
"""


@pytest.fixture(scope="module")
def enforced(cluster: Cluster, installation: Installation) -> Iterator[None]:
    """Network policies count, and know the API server's port of this cluster."""
    if not isinstance(cluster, LocalCluster):
        pytest.skip("whether this cluster's network plug-in enforces policies is not known; E2E_CLUSTER=local does")
    installation.upgrade(f"networkPolicy.apiServerPorts={{443,{cluster.api_port}}}")
    cluster.enforce_policies()
    yield
    cluster.ignore_policies()


@pytest.fixture(scope="module")
def pods(api: Api, enforced: None, team: str) -> Iterator[dict[str, Object]]:
    """A stranger, and pods with the labels of components, all of which listen; by the component."""
    places = {"analyzer": NAMESPACE, "release": NAMESPACE, "stranger": team}
    for component, namespace in places.items():
        api.create(_probe(component, namespace))
    wait_until(
        lambda: all(_is_ready(api, name, where) for name, where in places.items()), lambda: api.explain(NAMESPACE)
    )
    yield {name: api.get("Pod", f"probe-{name}", namespace) or {} for name, namespace in places.items()}
    for component, namespace in places.items():
        api.delete("Pod", f"probe-{component}", namespace, gracePeriodSeconds=0)


def _probe(component: str, namespace: str) -> Object:
    labels = {"app.kubernetes.io/name": "fleetprof", "app.kubernetes.io/instance": "fleetprof"}
    labels["app.kubernetes.io/component"] = component
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": TRAINER, "command": ["python3", "-c", LISTEN], "securityContext": restricted}
    container["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"containers": [container], "securityContext": security, "terminationGracePeriodSeconds": 0}
    metadata: Object = {"name": f"probe-{component}", "namespace": namespace}
    if component == "stranger":
        metadata["labels"] = {"fleetprof.io/inject": "false"}
    else:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _is_ready(api: Api, component: str, namespace: str) -> bool:
    pod = api.get("Pod", f"probe-{component}", namespace)
    return pod is not None and any(each["ready"] for each in pod["status"].get("containerStatuses") or [])


def test_a_job_is_injected_captured_and_analysed(
    api: Api,
    store: StoreInCluster,
    team: str,
    enforced: None,
    start_training: Callable[..., Training],
    make_request: Callable[..., JobRequest],
) -> None:
    training = start_training(team, "policed", ranks_per_pod=2)
    request = make_request(training, "policed")
    request.await_end()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert "report.json" in store.keys(team, request.uid)


@pytest.mark.parametrize(
    ("caller", "may", "may_not"),
    [
        ("stranger", ["hub", "store"], ["analyzer", "release"]),
        ("analyzer", ["hub", "store"], ["API server", "stranger", "release"]),
        ("release", ["API server"], ["hub", "store", "stranger", "analyzer"]),
    ],
)
def test_each_component_reaches_what_it_needs_and_nothing_else(
    api: Api, store: StoreInCluster, pods: dict[str, Object], caller: str, may: list[str], may_not: list[str]
) -> None:
    host, _, port = store.endpoint.removeprefix("http://").partition(":")
    addresses: dict[str, tuple[str, int]] = {
        "hub": (f"fleetprof-hub.{NAMESPACE}.svc.cluster.local", 8443),
        "store": (f"{host}.cluster.local", int(port)),
        "API server": ("kubernetes.default.svc.cluster.local", 443),
        **{name: (pod["status"]["podIP"], PORT) for name, pod in pods.items()},
    }
    wanted = json.dumps([addresses[name] for name in (*may, *may_not)])
    metadata = pods[caller]["metadata"]
    where = (metadata["name"], "-n", metadata["namespace"])

    output = api.kubectl("exec", *where, "--", "python3", "-c", DIAL, wanted)

    assert dict(zip((*may, *may_not), json.loads(output), strict=True)) == dict.fromkeys(may, True) | dict.fromkeys(
        may_not, False
    )
