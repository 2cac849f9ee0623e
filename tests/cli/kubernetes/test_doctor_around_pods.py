"""The doctor on everything around the pods: installation, rights, namespace, the last request."""

from typing import Any

import pytest
from fleetprof_cli.doctor.check import Verdict
from fleetprof_cli.kubernetes.doctor.installation_checks import judge_installation, judge_namespace
from fleetprof_cli.kubernetes.doctor.observation import Observation, Unknown
from fleetprof_cli.kubernetes.doctor.pod_checks import judge_latest
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_operator.ownership.lease import Holder, build_claim
from harness.kubernetes.doctor_facts import NAMESPACE, NO_LABEL, Json, make_facts, say

NOW_UNIX_NS = 1_796_000_000 * 10**9


def make_deployment(name: str, wanted: int, ready: int) -> Json:
    metadata = {"name": f"fleetprof-{name}", "namespace": "fleetprof-system"}
    metadata["labels"] = {"app.kubernetes.io/component": name}  # type: ignore[assignment]
    return {"metadata": metadata, "spec": {"replicas": wanted}, "status": {"readyReplicas": ready}}


def make_lease(age_s: int | None, trouble: str = "") -> Json:
    """None: nobody holds it."""
    holder = Holder("pod-a", "fleetprof-system/fleetprof", "10.0.0.1:8443")
    lease: Json = {"metadata": {"name": "fleetprof", "namespace": "kube-system", "resourceVersion": "1"}}
    if age_s is None:
        return lease
    claim = build_claim(lease, holder, NOW_UNIX_NS - age_s * 10**9, trouble)
    return {"metadata": lease["metadata"] | claim["metadata"], "spec": claim["spec"]}


@pytest.mark.parametrize(
    ("facts", "verdict", "found", "advice"),
    [
        (make_facts(has_kind=False), "fail", "this cluster has no ProfileRequests", "docs/install.md"),
        (make_facts(has_kind=Unknown("forbidden")), "warn", "cannot be looked for: forbidden", "ask an administrator"),
        (
            make_facts(rights={"create": False, "get": True, "delete": False}),
            "fail",
            "you may not create, delete profilerequests.fleetprof.io",
            "the ClusterRole fleetprof-editor",
        ),
        (make_facts(rights={"create": True, "get": False, "delete": True}), "fail", "may not get", "fleetprof-viewer"),
        (make_facts(webhooks=[]), "warn", "no pod gets its sidecar by itself", "fleetprof inject"),
        (make_facts(webhooks=Unknown("forbidden")), "ok", "not checked: forbidden", ""),
        (
            make_facts(webhooks=[{"metadata": {}, "webhooks": [{"name": "pods.inject.fleetprof.io"}]}]),
            "fail",
            "no CA bundle",
            "operator's log",
        ),
        (make_facts(deployments=[make_deployment("operator", 1, 0)]), "fail", "0 of 1 pods", "kubectl describe"),
        (
            make_facts(deployments=[make_deployment("operator", 0, 0)]),
            "fail",
            "fleetprof-system/fleetprof-operator is scaled to zero",
            "kubectl scale deployment fleetprof-operator -n fleetprof-system --replicas=1",
        ),
        (make_facts(deployments=[make_deployment("webhook", 2, 1)]), "warn", "1 of 2 pods", "kubectl describe"),
        (make_facts(deployments=[make_deployment("operator", 1, 1)]), "ok", "1 of 1 pods", ""),
        (make_facts(deployments=Unknown("forbidden")), "ok", "not checked: forbidden", "ask an administrator"),
        (make_facts(leases=Unknown("forbidden")), "ok", "not checked: forbidden", "ask an administrator"),
        (make_facts(leases=[make_lease(None)]), "fail", "no operator serves", "log"),
        (make_facts(leases=[make_lease(5)]), "ok", "pod-a holds the Lease kube-system/fleetprof", ""),
        (
            make_facts(leases=[make_lease(600)]),
            "fail",
            "has not renewed the Lease kube-system/fleetprof for 600 s",
            "log",
        ),
        (make_facts(leases=[make_lease(5, "no bucket")]), "fail", "pod-a says: no bucket", "docs/alerts.md"),
    ],
)
def test_what_is_said_of_the_installation(facts: Observation, verdict: str, found: str, advice: str) -> None:
    checks = list(judge_installation(facts, NOW_UNIX_NS))
    assert any(c.verdict == verdict and found in c.found and advice in c.advice for c in checks), say(checks)


@pytest.mark.parametrize(
    ("namespace", "found"),
    [
        (NAMESPACE, "team is labelled fleetprof.io/inject=true"),
        (NO_LABEL, "team is not labelled fleetprof.io/inject=true"),
        (Unknown("forbidden"), "not checked: forbidden"),
    ],
)
def test_what_is_said_of_the_namespace(namespace: Any, found: str) -> None:
    (check,) = judge_namespace(make_facts(namespace=namespace), "team")
    assert found in check.found
    assert check.verdict == Verdict.OK


def make_request(status: str, reason: str) -> RequestState:
    time = "2026-11-21T09:45:12Z"
    condition = {
        "type": "Succeeded",
        "status": status,
        "reason": reason,
        "message": "words",
        "lastTransitionTime": time,
    }
    body: Json = {"conditions": [condition]} | ({"completionTime": time} if status != "Unknown" else {})
    return RequestState({"metadata": {"name": "look"}, "status": body})


@pytest.mark.parametrize(
    ("state", "verdict", "found"),
    [
        (make_request("True", "Complete"), "ok", "ended well: Complete"),
        (make_request("Unknown", "Waiting"), "ok", "is under way"),
        (make_request("False", "NothingSpeaksKineto"), "warn", "ended with NothingSpeaksKineto: words"),
    ],
)
def test_what_the_last_request_ended_with(state: RequestState, verdict: str, found: str) -> None:
    (check,) = judge_latest(state)
    assert (check.verdict, found in check.found) == (verdict, True), say([check])
    assert list(judge_latest(None)) == []
