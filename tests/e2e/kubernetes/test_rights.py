"""Rights: a user of one namespace nothing in another, and our own roles no more than they use."""

import contextlib
from collections.abc import Callable

import pytest
from cluster.choice import Cluster
from fleetprof_api.pods import WITHOUT_SIDECAR_ANNOTATION
from harness.kubernetes.chart import VALUE_SETS, render
from scene.api import Api, Object, wait_until
from scene.audit import granted_to, used_by
from scene.held_pod import NAME
from scene.installation import NAMESPACE, Installation
from scene.namespaces import INJECTED

pytestmark = pytest.mark.cluster

# What stands between pods and targets of kinds that no test makes; tests/chart/test_rights.py holds them to the code.
OWNERS = {
    ("apps", "statefulsets", "get"),
    ("batch", "jobs", "get"),
    ("ray.io", "rayclusters", "get"),
    ("jobset.x-k8s.io", "jobsets", "get"),
    ("kubeflow.org", "mpijobs", "get"),
    ("kubeflow.org", "pytorchjobs", "get"),
}
RBAC = "rbac.authorization.k8s.io/v1"
REQUEST = """
apiVersion: fleetprof.io/v1alpha1
kind: ProfileRequest
metadata: {{name: theirs, namespace: {namespace}}}
spec:
  target: {{workload: {{apiVersion: batch/v1, kind: Job, name: theirs}}}}
  window: {{iterations: 1}}
  suspend: true
"""


@pytest.fixture(scope="module")
def neighbours(api: Api, installation: Installation, namespaces: Callable[..., str]) -> tuple[str, str]:
    """Two namespaces; `editor` of the first may edit requests there, as the chart's role says."""
    mine, theirs = namespaces("e2e-rights-mine", INJECTED), namespaces("e2e-rights-theirs", INJECTED)
    bind(api, mine, "editor", "fleetprof-editor")
    return mine, theirs


def bind(api: Api, namespace: str, user: str, role: str) -> None:
    """Gives a user a ClusterRole in one namespace."""
    group, _, _ = RBAC.partition("/")
    api.create(
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": {"name": user, "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
        }
    )


def test_an_editor_may_request_in_the_own_namespace(api: Api, neighbours: tuple[str, str]) -> None:
    mine, _ = neighbours

    api.kubectl("create", "-f", "-", "--as=editor", document=REQUEST.format(namespace=mine))

    assert "theirs" in api.kubectl("get", "profreq", "-n", mine, "--as=editor", "-o", "name")
    api.kubectl("delete", "profreq", "theirs", "-n", mine, "--as=editor")


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
def test_and_nothing_in_another(api: Api, neighbours: tuple[str, str], verb: str) -> None:
    mine, theirs = neighbours
    question = ("auth", "can-i", verb, "profilerequests.fleetprof.io", "--as=editor", "-n")

    assert api.kubectl(*question, mine).strip() == "yes"
    assert "no" in api.kubectl(*question, theirs, fails=True)


def test_a_request_there_is_refused_by_the_api_server(api: Api, neighbours: tuple[str, str]) -> None:
    _, theirs = neighbours

    refusal = api.kubectl("create", "-f", "-", "--as=editor", document=REQUEST.format(namespace=theirs), fails=True)

    assert "forbidden" in refusal


def test_with_the_switch_kubernetes_own_roles_hold_ours(api: Api, neighbours: tuple[str, str]) -> None:
    """The switch is off in this installation; here are the roles that it would make, and Kubernetes aggregates them."""
    mine, _ = neighbours
    roles = [
        role
        for role in render((*VALUE_SETS["aggregated roles"], "fullnameOverride=aggregated"))
        .of_kind("ClusterRole")
        .values()
        if role["metadata"]["name"] in ("aggregated-viewer", "aggregated-editor")
    ]
    bind(api, mine, "looker", "view")
    bind(api, mine, "worker", "edit")
    assert not may(api, "looker", "list", mine)
    assert not may(api, "worker", "create", mine)
    try:
        api.create(*roles)
        wait_until(lambda: may(api, "looker", "list", mine), "`view` to hold the viewer's verbs")
        wait_until(lambda: may(api, "worker", "create", mine), "`edit` to hold the editor's verbs")
        assert not may(api, "looker", "create", mine)
    finally:
        for role in roles:
            api.delete("ClusterRole", role["metadata"]["name"], api=RBAC)


def may(api: Api, user: str, verb: str, namespace: str) -> bool:
    with contextlib.suppress(AssertionError):
        api.kubectl("auth", "can-i", verb, "profilerequests.fleetprof.io", f"--as={user}", "-n", namespace)
        return True
    return False


def test_a_pod_whose_sidecar_nobody_can_pull_trains_without_it(api: Api, team: str) -> None:
    def look() -> Object:
        return api.get("Pod", NAME, team) or {"status": {}}

    wait_until(lambda: look()["status"].get("phase") == "Succeeded", lambda: f"its end: {look()['status']}", 240)
    annotations = look()["metadata"]["annotations"]
    assert "(registry.invalid/sidecar:none) did not start within 120 s: " in annotations[WITHOUT_SIDECAR_ANNOTATION]


@pytest.mark.parametrize("component", ["operator", "webhook", "webui"])
def test_a_role_holds_no_verb_that_was_not_used(
    api: Api, cluster: Cluster, installation: Installation, component: str
) -> None:
    """The tests of the other files, which ran before this one, made the audit log."""
    if cluster.audit_log is None:
        pytest.skip("the audit log of this cluster cannot be read here; the local cluster (E2E_CLUSTER=local) has one")
    account = (NAMESPACE, f"fleetprof-{component}")

    granted = granted_to(api, *account)

    assert granted, "no role is bound to the account"
    unused = granted - used_by(cluster.audit_log, installation.audit_begin, *account)
    assert sorted(unused - OWNERS) == []
