"""The one who asked for a capture: nobody's name is forged, by whoever has the right to make or change requests."""

import copy
from collections.abc import Iterator

import pytest
from fleetprof_api.pods import CHANGED_BY_ANNOTATION, POLICY_AUTHOR_ANNOTATION, REQUESTED_BY_ANNOTATION
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.profilerequests.requesters import UNKNOWN, Requesters
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.documents.policies import with_value
from harness.kubernetes.stolen_identities import (
    BINDINGS,
    DENIED,
    HOOKS,
    OPERATOR,
    REQUESTS,
    Json,
    must,
    profile_request,
)
from harness.waiting import wait_until
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

pytestmark = pytest.mark.cluster


@pytest.fixture
def without_webhook(server: ApiServer) -> Iterator[None]:
    """The webhook's configuration names nobody: as if somebody had taken it away. `guest` may make requests."""
    before = must(server, "GET", f"{HOOKS}/fleetprof")["webhooks"]
    must(server, "PATCH", f"{HOOKS}/fleetprof", {"webhooks": None})
    binding = {
        "metadata": {"name": "guest"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fleetprof-editor"},
        "subjects": [{"kind": "User", "name": "guest", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings"
    must(server, "POST", roles, binding)
    plain = profile_request("probe")
    wait_until(lambda: server.call("POST", f"{REQUESTS}?dryRun=All", plain, "guest")[0] == 201, "no webhook", 60)
    yield
    must(server, "DELETE", f"{roles}/guest")
    must(server, "DELETE", REQUESTS)
    must(server, "PATCH", f"{HOOKS}/fleetprof", {"webhooks": before})


@pytest.mark.attack
@pytest.mark.usefixtures("without_webhook")
def test_no_requester_is_forged_while_the_webhook_is_away(server: ApiServer) -> None:
    status, answer = server.call("POST", REQUESTS, profile_request("forged", "admin"), "guest")
    assert status in DENIED, answer
    assert "can be nobody else" in answer["message"]
    applied = f"{REQUESTS}/forged?fieldManager=x"
    apply = "application/apply-patch+yaml"
    assert server.call("PATCH", applied, profile_request("forged", "admin"), "guest", kind=apply)[0] in DENIED

    for name, by in (("own", "guest"), ("silent", None)):
        status, made = server.call("POST", REQUESTS, profile_request(name, by), "guest")
        assert status == 201, made
        noted = {"metadata": {"annotations": {REQUESTED_BY_ANNOTATION: "admin"}}}
        taken = {"metadata": {"annotations": {REQUESTED_BY_ANNOTATION: None}}}
        path = f"{REQUESTS}/{name}"
        key = REQUESTED_BY_ANNOTATION.replace("/", "~1")
        operations = [{"op": "add", "path": f"/metadata/annotations/{key}", "value": "admin"}]
        forged = copy.deepcopy(made)
        forged["metadata"]["annotations"] = {REQUESTED_BY_ANNOTATION: "admin"}
        attempts: list[tuple[str, str, object, str]] = [
            ("PATCH", path, noted, ""),
            ("PUT", path, forged, ""),
            ("PATCH", f"{path}?fieldManager=x&force=true", profile_request(name, "admin"), apply),
        ]
        if by is not None:
            attempts += [("PATCH", path, taken, ""), ("PATCH", path, operations, "application/json-patch+json")]
        for method, place, document, kind in attempts:
            status, answer = server.call(method, place, document, "guest", kind=kind)
            assert status in DENIED, (method, document, answer)
            assert "cannot be changed" in answer["message"], answer
        # The status' own address leaves the metadata alone, whoever may write there.
        server.call("PATCH", f"{path}/status", noted, account=OPERATOR)
        found = must(server, "GET", path)["metadata"].get("annotations") or {}
        assert found.get(REQUESTED_BY_ANNOTATION) == by
        status, answer = server.call("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, "guest")
        assert status == 200, answer


@pytest.mark.attack
@pytest.mark.usefixtures("without_webhook")
def test_no_author_of_a_policy_is_forged_while_the_webhook_is_away(server: ApiServer) -> None:
    """Neither on the policy, by whoever may write it, nor on a request that the operator has made."""
    path = REQUESTS.replace("profilerequests", "profilepolicies")

    def policy(name: str, by: str | None, mode: str = "DryRun") -> Json:
        document = with_value("spec.mode", mode)
        annotations = {CHANGED_BY_ANNOTATION: by} if by is not None else {}
        return document | {"metadata": {"name": name, "annotations": annotations}}

    status, answer = server.call("POST", path, policy("forged", "admin"), "guest")
    assert status in DENIED, answer
    assert "can be nobody else" in answer["message"]
    must(server, "POST", path, policy("others", None))  # written by the administrator
    place = f"{path}/others"
    must(server, "PATCH", place, {"metadata": {"annotations": {"a": "b"}}})
    named, merge = {"metadata": {"annotations": {CHANGED_BY_ANNOTATION: "guest"}}}, {"spec": {"mode": "Capture"}}
    assert server.call("PATCH", place, named, "guest")[0] in DENIED  # takes no other's spec for their own
    status, answer = server.call("PATCH", place, named | merge, "guest")
    assert status == 200, answer
    status, answer = server.call("PATCH", place, {"spec": {"mode": "DryRun"}})
    assert status in DENIED, "the administrator's spec would be the guest's"
    assert "can be nobody else" in answer["message"]
    must(server, "DELETE", place)

    request = profile_request("of-a-policy")
    request["metadata"]["annotations"] = {POLICY_AUTHOR_ANNOTATION: "ada"}
    assert server.call("POST", REQUESTS, request, account=OPERATOR)[0] == 201
    for author in ("eve", None):
        change = {"metadata": {"annotations": {POLICY_AUTHOR_ANNOTATION: author}}}
        status, answer = server.call("PATCH", f"{REQUESTS}/of-a-policy", change, "guest")
        assert status in DENIED, answer
        assert "cannot be changed" in answer["message"]


@pytest.mark.attack
@pytest.mark.usefixtures("without_webhook")
def test_the_operator_s_account_writes_no_requester_either(server: ApiServer) -> None:
    status, made = server.call("POST", REQUESTS, profile_request("theirs", "guest"), "guest")
    assert status == 201, made
    noted = {"metadata": {"annotations": {REQUESTED_BY_ANNOTATION: "admin"}}}
    assert server.call("PATCH", f"{REQUESTS}/theirs", noted, account=OPERATOR)[0] in DENIED


@pytest.mark.usefixtures("without_webhook")
async def test_the_operator_names_who_admission_vouches_for_and_nobody_else(server: ApiServer) -> None:
    configuration = Configuration()
    await config.load_kube_config(config_file=str(server.kubeconfig()), client_configuration=configuration)
    cluster = Cluster(ApiClient(configuration))
    guard = f"{BINDINGS}/fleetprof-requester"
    try:
        _, own = server.call("POST", REQUESTS, profile_request("vouched", "guest"), "guest")
        _, silent = server.call("POST", REQUESTS, profile_request("noted-by-nobody"), "guest")
        assert await Requesters(cluster, guard, settled_s=0).find(own) == "guest"
        assert await Requesters(cluster, guard, settled_s=0).find(silent) == UNKNOWN
        assert (
            await Requesters(cluster, guard, settled_s=3600).find(own) == UNKNOWN
        )  # made before the guard had settled
        assert await Requesters(cluster, f"{guard}-of-another-release", settled_s=0).find(own) == UNKNOWN
    finally:
        await cluster.close()
