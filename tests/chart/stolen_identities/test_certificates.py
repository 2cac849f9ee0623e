"""The identity that writes the webhook's certificate."""

import base64
from datetime import UTC, datetime

import pytest
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.stolen_identities import (
    BINDINGS,
    CERTIFICATES,
    DENIED,
    EVERYTHING,
    HOOKS,
    JOBS,
    POLICIES,
    REQUESTS,
    SECRETS,
    TEAM,
    Json,
    job,
    must,
    widen,
)

pytestmark = pytest.mark.cluster


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
