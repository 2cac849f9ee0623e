"""What each of our identities can do with its rights, and what it tries in vain: attempts at a real API server.

The release is the chart's, installed by helm; nothing runs there, so that every call is made in an identity's name
(impersonation: its rights and no other). What comes of it is the table in docs/security.md.
"""

import base64
import copy
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from fleetprof_api.pods import REQUESTED_BY_ANNOTATION
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.profilerequests.requesters import UNKNOWN, Requesters
from harness.kubernetes import chart
from harness.kubernetes.api_server import ApiServer, run_api_server
from harness.kubernetes.chart import CHART, VALUE_SETS
from harness.training.local_system import wait_until
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

pytestmark = pytest.mark.cluster

SYSTEM = chart.NAMESPACE
CERTIFICATES, OPERATOR, WEBHOOK, ANALYZER = (
    f"{SYSTEM}:fleetprof-{name}" for name in ("certificates", "operator", "webhook", "analyzer")
)
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
SECRETS = f"/api/v1/namespaces/{SYSTEM}/secrets"
JOBS = f"/apis/batch/v1/namespaces/{SYSTEM}/jobs"
TEAM = "/api/v1/namespaces/team-a"
REQUESTS = "/apis/fleetprof.io/v1alpha1/namespaces/team-a/profilerequests"
DENIED = (403, 422)  # by RBAC, or by a policy
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with a release, a team beside it, and policies that are heeded."""
    with run_api_server(tmp_path_factory.mktemp("stolen")) as server:
        for namespace in (SYSTEM, "team-a"):
            must(server, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        must(server, "POST", f"{TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
        must(server, "POST", f"{TEAM}/secrets", {"metadata": {"name": "of-the-team"}})
        helm = chart.find_helm()
        assert helm is not None
        settings = [word for value in VALUE_SETS["S3"] for word in ("--set", value)]
        done = subprocess.run(
            [helm, "--namespace", SYSTEM, "install", "fleetprof", str(CHART), *settings],
            env=os.environ | {"KUBECONFIG": str(server.kubeconfig())},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        wait_until(lambda: server.call("GET", REQUESTS)[0] == 200, "the kind to be served")
        # A policy is heeded a moment after it is made.
        wider = {"webhooks": widen(server, failurePolicy="Fail")}
        path = f"{HOOKS}/fleetprof?dryRun=All"
        wait_until(lambda: server.call("PATCH", path, wider, account=CERTIFICATES)[0] in DENIED, "the policy", 60)
        free = job(server, serviceAccountName="fleetprof-webhook")
        path = f"{JOBS}?dryRun=All"
        wait_until(lambda: server.call("POST", path, free, account=OPERATOR)[0] in DENIED, "the policy of Jobs", 60)
        yield server


def must(server: ApiServer, method: str, path: str, document: object = None) -> Json:
    status, answer = server.call(method, path, document)
    assert status < 300, answer
    return answer


def widen(server: ApiServer, **changes: Any) -> list[Json]:
    """The webhooks with the first one changed; None takes a field away."""
    webhooks: list[Json] = copy.deepcopy(must(server, "GET", f"{HOOKS}/fleetprof")["webhooks"])
    webhooks[0] = {name: value for name, value in (webhooks[0] | changes).items() if value is not None}
    return webhooks


def job(server: ApiServer, **spec: Any) -> Json:
    """A Job as the operator makes them, with fields of the pod's spec changed."""
    config = must(server, "GET", f"/api/v1/namespaces/{SYSTEM}/configmaps/fleetprof-analyzer")
    pod = yaml.safe_load(config["data"]["pod.yaml"])
    pod["spec"] |= spec
    return {"metadata": {"name": "fleetprof-analyze-x"}, "spec": {"template": pod}}


# ---------------------------------------------------------------- the certificates' identity


def test_the_certificates_identity_changes_whom_the_api_server_trusts(server: ApiServer) -> None:
    webhooks = must(server, "GET", f"{HOOKS}/fleetprof")["webhooks"]
    authority = renew_certificates(Certificates(), ["x"], datetime.now(UTC)).ca_crt
    for webhook in webhooks:
        webhook["clientConfig"]["caBundle"] = base64.b64encode(authority).decode()
    path = f"{HOOKS}/fleetprof?dryRun=All"
    status, answer = server.call("PATCH", path, {"webhooks": webhooks}, account=CERTIFICATES)
    assert status == 200, answer
    for method, document in (("GET", None), ("PATCH", {"data": {"tls.crt": ""}})):
        assert server.call(method, f"{SECRETS}/fleetprof-webhook-tls", document, account=CERTIFICATES)[0] == 200


EVERYTHING = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}]


@pytest.mark.attack
@pytest.mark.parametrize(
    "change",
    [
        {"rules": EVERYTHING},
        {"namespaceSelector": {}},
        {"objectSelector": {}},
        {"matchConditions": None},
        {"clientConfig": {"url": "https://evil.example/pods"}},
        {"clientConfig": {"service": {"name": "evil", "namespace": "team-a", "path": "/pods", "port": 443}}},
        {"failurePolicy": "Fail"},
        {"reinvocationPolicy": "IfNeeded"},
        {"matchPolicy": "Exact"},
        {"timeoutSeconds": 30},
        {"sideEffects": "NoneOnDryRun"},
        {"admissionReviewVersions": ["v1", "v1beta1"]},
        {"name": "evil.inject.fleetprof.io"},
    ],
    ids=lambda change: "+".join(change),
)
def test_it_cannot_change_what_the_webhook_is_asked_about(change: Json, server: ApiServer) -> None:
    path = f"{HOOKS}/fleetprof?dryRun=All"
    status, answer = server.call("PATCH", path, {"webhooks": widen(server, **change)}, account=CERTIFICATES)
    assert status in DENIED, answer
    assert "caBundle only" in answer["message"], answer


@pytest.mark.attack
def test_it_adds_takes_and_owns_no_webhook_and_no_other_configuration(server: ApiServer) -> None:
    webhooks = must(server, "GET", f"{HOOKS}/fleetprof")["webhooks"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}
    path = f"{HOOKS}/fleetprof?dryRun=All"
    for change in (
        {"webhooks": webhooks[1:]},
        {"webhooks": [*webhooks, {**webhooks[0], "name": "evil.inject.fleetprof.io", "rules": EVERYTHING}]},
        {"webhooks": None},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "team-a/evil"}}},
        {"metadata": {"ownerReferences": [owner]}},
        {"metadata": {"finalizers": ["evil.example/x"]}},
    ):
        status, answer = server.call("PATCH", path, change, account=CERTIFICATES)
        assert status in DENIED, (change, answer)
    evil = {"metadata": {"name": "evil"}, "webhooks": [{**webhooks[0], "rules": EVERYTHING}]}
    for method, place, document in (
        ("POST", HOOKS, evil),
        ("PUT", f"{HOOKS}/fleetprof", {**evil, "metadata": {"name": "fleetprof"}}),
        ("DELETE", f"{HOOKS}/fleetprof", None),
        ("DELETE", HOOKS, None),
        ("PATCH", f"{POLICIES}/fleetprof-certificates", {"spec": {"failurePolicy": "Ignore"}}),
        ("DELETE", f"{POLICIES}/fleetprof-certificates", None),
        ("DELETE", f"{BINDINGS}/fleetprof-certificates", None),
        ("GET", f"{SECRETS}/fleetprof-tls", None),
        ("GET", SECRETS, None),
        ("GET", f"{TEAM}/pods", None),
        ("GET", REQUESTS, None),
        ("POST", JOBS, job(server)),
    ):
        assert server.call(method, place, document, account=CERTIFICATES)[0] == 403, (method, place)


def test_the_policy_knows_every_field_of_a_webhook_that_this_api_server_has(server: ApiServer) -> None:
    _, found = server.call("GET", "/openapi/v3/apis/admissionregistration.k8s.io/v1")
    kinds = found["components"]["schemas"]
    webhook = kinds["io.k8s.api.admissionregistration.v1.MutatingWebhook"]["properties"]
    client = kinds["io.k8s.api.admissionregistration.v1.WebhookClientConfig"]["properties"]
    policy = str(must(server, "GET", f"{POLICIES}/fleetprof-certificates")["spec"]["validations"])
    fields = (set(webhook) - {"clientConfig", "name"}) | {f"clientConfig.{name}" for name in set(client) - {"caBundle"}}
    assert {field for field in fields if f"webhooks[].{field}:" not in policy} == set()
    assert "type checking" not in str(must(server, "GET", f"{POLICIES}/fleetprof-certificates").get("status")).lower()


# ---------------------------------------------------------------- the operator, and the release hook with its account


@pytest.mark.attack
def test_the_operator_s_account_reaches_no_configuration_no_secret_and_no_pod(server: ApiServer) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    webhooks = {"webhooks": widen(server, rules=EVERYTHING)}
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    for method, place, document in (
        ("GET", f"{HOOKS}/fleetprof", None),
        ("PATCH", f"{HOOKS}/fleetprof", webhooks),
        ("PATCH", f"{BINDINGS}/fleetprof-requester", {"spec": {"validationActions": ["Warn"]}}),
        ("DELETE", f"{BINDINGS}/fleetprof-requester", None),
        ("DELETE", f"{BINDINGS}/fleetprof-analyses", None),
        ("GET", f"{SECRETS}/fleetprof-webhook-tls", None),
        ("GET", SECRETS, None),
        ("GET", f"{TEAM}/secrets", None),
        ("GET", f"{TEAM}/secrets/of-the-team", None),
        ("GET", f"{TEAM}/configmaps", None),
        ("POST", f"{TEAM}/pods", pod),
        ("POST", f"/api/v1/namespaces/{SYSTEM}/pods", pod),
        ("PATCH", f"{TEAM}/pods/p", {"metadata": {"labels": {"a": "b"}}}),
        ("DELETE", f"{TEAM}/pods/p", None),
        ("POST", f"{TEAM}/pods/p/exec", None),
        ("POST", f"{TEAM}/pods/p/ephemeralcontainers", None),
        ("GET", f"{TEAM}/pods/p/log", None),
        ("POST", f"{TEAM}/serviceaccounts/default/token", {"spec": {}}),
        ("POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/fleetprof-webhook/token", {"spec": {}}),
        ("POST", "/apis/batch/v1/namespaces/team-a/jobs", job(server)),
        ("POST", REQUESTS, profile_request("x")),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role),
        ("POST", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments", {"metadata": {"name": "d"}}),
        ("PATCH", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/fleetprof-webhook", {"metadata": {"labels": {}}}),
    ):
        status, answer = server.call(method, place, document, account=OPERATOR)
        assert status == 403, (method, place, answer)


def test_the_operator_s_account_reads_since_when_requesters_are_guarded(server: ApiServer) -> None:
    status, found = server.call("GET", f"{BINDINGS}/fleetprof-requester", account=OPERATOR)
    assert (status, found["spec"]["validationActions"]) == (200, ["Deny"])
    told = must(server, "GET", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/fleetprof-operator")
    (container,) = told["spec"]["template"]["spec"]["containers"]
    environment = {item["name"]: item.get("value") for item in container["env"]}
    assert environment["FLEETPROF_REQUESTER_GUARD"] == f"{BINDINGS}/fleetprof-requester"


def test_the_operator_s_account_makes_the_job_of_the_chart(server: ApiServer) -> None:
    status, answer = server.call("POST", f"{JOBS}?dryRun=All", job(server), account=OPERATOR)
    assert status == 201, answer


def secret_volume(name: str, key: str = "") -> list[Json]:
    return [
        {"name": "identity", "secret": {"secretName": name} | ({"items": [{"key": key, "path": "x"}]} if key else {})}
    ]


def projected(**source: Any) -> list[Json]:
    return [{"name": "identity", "projected": {"sources": [source]}}]


@pytest.mark.attack
@pytest.mark.parametrize(
    "change",
    [
        {"serviceAccountName": "fleetprof-webhook"},
        {"serviceAccountName": "fleetprof-certificates"},
        {"serviceAccountName": None},
        {"automountServiceAccountToken": True},
        {"volumes": secret_volume("fleetprof-webhook-tls")},
        {"volumes": secret_volume("fleetprof-tls", "ca.key")},
        {"volumes": projected(secret={"name": "fleetprof-webhook-tls"})},
        {"volumes": projected(secret={"name": "fleetprof-tls", "items": [{"key": "tls.key", "path": "x"}]})},
        {"volumes": projected(secret={"name": "fleetprof-tls"})},
        {"volumes": [{"name": "identity", "hostPath": {"path": "/"}}]},
        {"hostNetwork": True},
        {"hostPID": True},
        {"securityContext": {"runAsUser": 0}},
        {"initContainers": [{"name": "i", "image": "evil"}]},
    ],
    ids=lambda change: str(change)[:60],
)
def test_a_job_of_the_operator_s_takes_nobody_else_s_account_or_secret(change: Json, server: ApiServer) -> None:
    status, answer = server.call("POST", f"{JOBS}?dryRun=All", job(server, **change), account=OPERATOR)
    assert status in DENIED, answer
    assert "the operator's Jobs" in answer["message"], answer


@pytest.mark.attack
@pytest.mark.parametrize(
    "change",
    [
        {"image": "evil.example/x"},
        {"securityContext": {"privileged": True}},
        {"envFrom": [{"secretRef": {"name": "fleetprof-webhook-tls"}}]},
        {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "fleetprof-webhook-tls", "key": "tls.key"}}}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nor_does_its_container(change: Json, server: ApiServer) -> None:
    made = job(server)
    made["spec"]["template"]["spec"]["containers"][0] |= change
    status, answer = server.call("POST", f"{JOBS}?dryRun=All", made, account=OPERATOR)
    assert status in DENIED, answer
    # Privilege is switched off in this API server altogether.
    assert "the operator's Jobs" in answer["message"] or "disallowed by cluster policy" in answer["message"], answer


# ---------------------------------------------------------------- webhook and analyzer


@pytest.mark.attack
@pytest.mark.parametrize("account", [WEBHOOK, ANALYZER])
def test_webhook_and_analyzer_reach_next_to_nothing(account: str, server: ApiServer) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    for method, place, document in (
        ("GET", f"{HOOKS}/fleetprof", None),
        ("PATCH", f"{HOOKS}/fleetprof", {"webhooks": widen(server, rules=EVERYTHING)}),
        ("GET", f"{SECRETS}/fleetprof-webhook-tls", None),
        ("GET", f"{SECRETS}/fleetprof-tls", None),
        ("GET", f"{TEAM}/secrets", None),
        ("GET", f"{TEAM}/pods", None),
        ("POST", f"{TEAM}/pods", pod),
        ("GET", "/api/v1/namespaces", None),
        ("GET", REQUESTS, None),
        ("POST", REQUESTS, profile_request("x")),
        ("POST", JOBS, job(server)),
        ("DELETE", f"{BINDINGS}/fleetprof-requester", None),
        ("POST", f"{TEAM}/serviceaccounts/default/token", {"spec": {}}),
    ):
        assert server.call(method, place, document, account=account)[0] == 403, (method, place)
    quotas = {server.call("GET", f"{TEAM}/{what}", account=account)[0] for what in ("resourcequotas", "limitranges")}
    assert quotas == ({200} if account == WEBHOOK else {403})


# ---------------------------------------------------------------- who asked


def profile_request(name: str, by: str | None = None) -> Json:
    annotations = {REQUESTED_BY_ANNOTATION: by} if by is not None else {}
    spec = {"target": {"selector": {"matchLabels": {"a": "b"}}}, "window": {"iterations": 1}}
    return {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


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
        attempts = [
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
