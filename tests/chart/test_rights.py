"""Rights: exactly these verbs, and no other."""

from pathlib import Path
from typing import Any

import pytest
from harness.kubernetes.chart import NAMESPACE, VALUE_SETS, render

pytestmark = pytest.mark.helm

DOCS = Path(__file__).parents[2] / "docs/rbac-and-s3.md"

Rights = set[tuple[str, str, str]]  # (resource.group or resource, verbs, of that name only)


def rights(role: dict[str, Any]) -> Rights:
    found: Rights = set()
    for rule in role["rules"]:
        assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name = f"{resource}.{group}" if group else resource
                found.add((name, " ".join(rule["verbs"]), " ".join(rule.get("resourceNames", []))))
    return found


SERVED: Rights = {
    ("profilerequests.fleetprof.io", "create delete list patch watch", ""),
    ("profilepolicies.fleetprof.io", "list watch", ""),
    ("profilerequests/status.fleetprof.io", "patch", ""),
    ("profilepolicies/status.fleetprof.io", "patch", ""),
    ("pods", "get list watch", ""),
    ("events", "create", ""),
    ("replicasets.apps", "get", ""),
    ("statefulsets.apps", "get", ""),
    ("jobs.batch", "get", ""),
    ("rayclusters.ray.io", "get", ""),
    ("jobsets.jobset.x-k8s.io", "get", ""),
    ("mpijobs.kubeflow.org", "get", ""),
    ("pytorchjobs.kubeflow.org", "get", ""),
}
GO_ON: Rights = (SERVED - {("pods", "get list watch", "")}) | {("pods", "get list patch watch", "")}
"""And what lets pods go on without a sidecar that does not start, where a policy bounds that."""
LEASES: Rights = {("leases.coordination.k8s.io", "list watch", "fleetprof")}
LEASE: Rights = {("leases.coordination.k8s.io", "get patch", "fleetprof")}
TOKENS: Rights = {("tokenreviews.authentication.k8s.io", "create", "")}
GUARD: Rights = {
    ("validatingadmissionpolicybindings.admissionregistration.k8s.io", "get", "fleetprof-requester"),
}
OLD_GUARD: Rights = {("mutatingwebhookconfigurations.admissionregistration.k8s.io", "get", "fleetprof")}
BUNDLE: Rights = {("mutatingwebhookconfigurations.admissionregistration.k8s.io", "get patch", "fleetprof")}
OWN: Rights = {
    ("jobs.batch", "create delete list watch", ""),
    ("pods", "list", ""),
    ("secrets", "get patch", "fleetprof-tls"),
}
IN_SYSTEM = {"kube-system/fleetprof-operator-lease": LEASE}
QUOTAS: Rights = {("resourcequotas", "list", ""), ("limitranges", "list", "")}
NODES: Rights = {("nodes", "list watch", "")}
REVIEWS: Rights = {("subjectaccessreviews.authorization.k8s.io", "create", "")}
ANYBODY: Rights = {("users", "impersonate", ""), ("groups", "impersonate", "")}
CERTIFICATES: Rights = {("secrets", "get patch", "fleetprof-tls")}


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("S3", {"fleetprof-operator": GO_ON | LEASES | TOKENS | GUARD, "fleetprof-operator-own": OWN} | IN_SYSTEM),
        ("no webhook", {"fleetprof-operator": SERVED | LEASES | TOKENS, "fleetprof-operator-own": OWN} | IN_SYSTEM),
        (
            "cert-manager",
            {"fleetprof-operator": GO_ON | LEASES | TOKENS | GUARD, "fleetprof-operator-own": OWN - CERTIFICATES}
            | IN_SYSTEM,
        ),
        (
            "namespaced",
            {
                "fleetprof-operator": SERVED,
                "fleetprof-operator-own": OWN,
                "fleetprof-operator-lease": LEASE,
            },
        ),
        (
            "two namespaces",
            {f"{team}/fleetprof-operator": SERVED for team in ("team-a", "team-b")}
            | {f"{team}/fleetprof-operator-lease": LEASE for team in ("team-a", "team-b")}
            | {"fleetprof-operator-own": OWN},
        ),
        (
            "a shard",
            {f"{team}/fleetprof-operator": GO_ON for team in ("team-a", "team-b")}
            | {f"{team}/fleetprof-operator-lease": LEASE for team in ("team-a", "team-b")}
            | {"fleetprof-operator-own": OWN, "fleetprof-operator-guard": GUARD},
        ),
        (
            "owners",
            {
                "fleetprof-operator": GO_ON | LEASES | TOKENS | GUARD | {("pipelines.example.com", "get", "")},
                "fleetprof-operator-own": OWN,
                **IN_SYSTEM,
            },
        ),
        (
            "pods that wait for good",
            {"fleetprof-operator": SERVED | LEASES | TOKENS | GUARD, "fleetprof-operator-own": OWN} | IN_SYSTEM,
        ),
        ("no rights", {}),
    ],
)
def test_the_operator_holds_exactly_these_rights(name: str, roles: dict[str, Rights]) -> None:
    objects = render(VALUE_SETS[name])
    found = objects.of_kind("ClusterRole") | objects.of_kind("Role")
    assert {key: rights(role) for key, role in found.items() if "operator" in key} == roles


def test_before_kubernetes_1_30_the_webhook_s_configuration_is_the_guard() -> None:
    objects = render(VALUE_SETS["S3"], "--kube-version=1.29.0")
    assert rights(objects.one("ClusterRole", "fleetprof-operator")) == SERVED | LEASES | TOKENS | OLD_GUARD
    assert not objects.of_kind("ValidatingAdmissionPolicy")


def test_the_certificates_identity_holds_two_rights_and_nobody_else_holds_them() -> None:
    objects = render()
    assert rights(objects.one("ClusterRole", "fleetprof-certificates")) == BUNDLE
    assert rights(objects.one("Role", "fleetprof-certificates")) == {("secrets", "get patch", "fleetprof-webhook-tls")}
    for kind in ("Role", "ClusterRole"):
        for name, role in objects.of_kind(kind).items():
            changes = {right for right in rights(role) if right[1] != "get"}
            assert name == "fleetprof-certificates" or not changes & (
                BUNDLE | {("secrets", "get patch", "fleetprof-webhook-tls")}
            )


def test_the_webhook_may_read_quotas_and_nothing_of_pods() -> None:
    assert rights(render().one("ClusterRole", "fleetprof-webhook")) == QUOTAS
    looking = render(VALUE_SETS["an image that is there first"])
    assert rights(looking.one("ClusterRole", "fleetprof-webhook")) == QUOTAS | NODES


@pytest.mark.attack
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web UI", REVIEWS),
        ("web UI and its Secrets", REVIEWS),  # whose people's tokens are passed on
        ("web UI behind a proxy", REVIEWS | ANYBODY),
        (
            "web UI that impersonates some",
            REVIEWS | {("users", "impersonate", "ann"), ("groups", "impersonate", "oidc:team-a system:authenticated")},
        ),
    ],
)
def test_the_web_ui_may_ask_what_people_may_and_impersonate_only_with_the_switch(name: str, expected: Rights) -> None:
    objects = render(VALUE_SETS[name])
    assert rights(objects.one("ClusterRole", "fleetprof-webui")) == expected
    assert not [key for key in objects.of_kind("Role") if "webui" in key]


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_analyzer_and_the_store_hold_no_right(name: str) -> None:
    objects = render(VALUE_SETS[name])
    bindings = [*objects.of_kind("RoleBinding").values(), *objects.of_kind("ClusterRoleBinding").values()]
    account = objects.analyzer_pod()["spec"]["serviceAccountName"]
    assert account not in {subject["name"] for binding in bindings for subject in binding["subjects"]}


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_binding_names_a_role_and_an_account_that_are_there(name: str) -> None:
    objects = render(VALUE_SETS[name])
    used = {template["spec"].get("serviceAccountName") for _, template in objects.pods()}
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for key, binding in objects.of_kind(kind).items():
            place = key.rpartition("/")[0]
            role = binding["roleRef"]
            found = objects.of_kind(role["kind"])
            assert "/".join(filter(None, (place, role["name"]))) in found, key
            (subject,) = binding["subjects"]
            assert subject["namespace"] == NAMESPACE, key
            assert subject["name"] in used, key


@pytest.mark.parametrize("name", ["namespaced", "two namespaces"])
def test_a_namespaced_release_has_no_object_of_the_cluster(name: str) -> None:
    kinds = {item["kind"] for item in render(VALUE_SETS[name]).items}
    assert not kinds & {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
    }


def test_people_get_roles_to_bind_and_nothing_by_default() -> None:
    objects = render()
    for role, verbs in (
        ("viewer", "get list watch"),
        ("editor", "create delete deletecollection get list patch update watch"),
    ):
        granted = {(f"{kind}.fleetprof.io", verbs, "") for kind in ("profilerequests", "profilepolicies")}
        assert rights(objects.one("ClusterRole", f"fleetprof-{role}")) == granted
    for role in ("fleetprof-viewer", "fleetprof-editor"):
        labels = objects.one("ClusterRole", role)["metadata"]["labels"]
        assert not any(label.startswith("rbac.authorization.k8s.io/") for label in labels)


def test_aggregation_is_a_switch() -> None:
    objects = render(VALUE_SETS["aggregated roles"])
    for role, into in (("viewer", "view"), ("editor", "edit")):
        labels = objects.one("ClusterRole", f"fleetprof-{role}")["metadata"]["labels"]
        assert labels[f"rbac.authorization.k8s.io/aggregate-to-{into}"] == "true"


def documented(table: str) -> set[tuple[str, str]]:
    """(resource, verb) of one table of the page about rights, by the words above it."""
    text = DOCS.read_text()
    rows = text[text.index(table) :].split("|---|---|---|\n")[1].split("\n\n")[0].splitlines()
    found = set()
    for row in rows:
        _, resource, verbs, reason, _ = (cell.strip() for cell in row.split("|"))
        assert len(reason) > 5, row
        found |= {
            (name.strip(" `"), verb)
            for name in resource.split(",")
            for verb in verbs.partition(" of ")[0].replace(",", " ").split()
        }
    return found


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("In every namespace (a ClusterRole)", GO_ON | LEASES | TOKENS | GUARD | OLD_GUARD),
        ("In its own namespace", OWN),
        ("Where its Lease is", LEASE),
        ("### The webhook", QUOTAS | NODES),
        ("### The web UI", REVIEWS | ANYBODY),
        ("### The certificates' identity", BUNDLE | {("secrets", "get patch", "")}),
    ],
)
def test_every_right_is_explained_and_no_other_is(table: str, expected: Rights) -> None:
    verbs = {(resource.partition(".")[0], verb) for resource, verbs, _ in expected for verb in verbs.split()}
    assert documented(table) == verbs
