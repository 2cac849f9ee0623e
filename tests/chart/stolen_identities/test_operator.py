"""The operator's identity, and the release hook with its account."""

from typing import Any

import pytest
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.stolen_identities import (
    BINDINGS,
    DENIED,
    EVERYTHING,
    HOOKS,
    JOBS,
    OPERATOR,
    SECRETS,
    SYSTEM,
    TEAM,
    Json,
    job,
    must,
    widen,
)

pytestmark = pytest.mark.cluster


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
        ("DELETE", f"{TEAM}/pods/p", None),
        ("POST", f"{TEAM}/pods/p/exec", None),
        ("POST", f"{TEAM}/pods/p/ephemeralcontainers", None),
        ("GET", f"{TEAM}/pods/p/log", None),
        ("POST", f"{TEAM}/serviceaccounts/default/token", {"spec": {}}),
        ("POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/fleetprof-webhook/token", {"spec": {}}),
        ("POST", "/apis/batch/v1/namespaces/team-a/jobs", job(server)),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role),
        ("POST", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments", {"metadata": {"name": "d"}}),
        ("PATCH", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/fleetprof-webhook", {"metadata": {"labels": {}}}),
    ):
        status, answer = server.call(method, place, document, account=OPERATOR)
        assert status == 403, (method, place, answer)


def test_the_operator_s_account_reads_since_when_requesters_are_guarded(server: ApiServer) -> None:
    status, found = server.call("GET", f"{BINDINGS}/fleetprof-requester", account=OPERATOR)
    assert (status, found["spec"]["validationActions"]) == (200, ["Deny"])
    deployment = must(server, "GET", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/fleetprof-operator")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
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
