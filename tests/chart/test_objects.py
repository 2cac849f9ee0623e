"""Values in, objects out: what each switch makes of a release."""

import re
from typing import Any

import pytest
from fleetprof_cli.kubernetes.bundled_store import READER_ANNOTATION, READER_PORT
from harness.kubernetes.chart import NAMESPACE, OIDC, S3, VALUE_SETS, Objects, matches, render

pytestmark = pytest.mark.helm


# Where cert-manager keeps the certificates, nobody of ours does.
NO_KEEPER = {
    "Secret": {"-fleetprof-tls", "-fleetprof-webhook-tls"},
    **{
        kind: {"-fleetprof-certificates"}
        for kind in (
            "Deployment",
            "ServiceAccount",
            "Role",
            "RoleBinding",
            "ClusterRole",
            "ClusterRoleBinding",
            "NetworkPolicy",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        )
    },
}
WEBUI = {
    kind: {"+fleetprof-webui"}
    for kind in ("Deployment", "Service", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "NetworkPolicy")
}
OF_THE_CLUSTER = (
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
# What a switch adds to, or takes from, a release with nothing but a bucket.
KINDS = {
    "S3": {},
    "bundled store": {
        "Deployment": {"+fleetprof-store"},
        "Service": {"+fleetprof-store"},
        "Secret": {"+fleetprof-store", "+fleetprof-store-reader"},
        "PersistentVolumeClaim": {"+fleetprof-store"},
        "NetworkPolicy": {"+fleetprof-store"},
    },
    "bundled store without a volume": {
        "Deployment": {"+fleetprof-store"},
        "Service": {"+fleetprof-store"},
        "Secret": {"+fleetprof-store", "+fleetprof-store-reader"},
        "NetworkPolicy": {"+fleetprof-store"},
    },
    "no webhook": {
        "Deployment": {"-fleetprof-webhook", "-fleetprof-certificates"},
        "Service": {"-fleetprof-webhook"},
        "Secret": {"-fleetprof-webhook-tls"},
        "ServiceAccount": {"-fleetprof-webhook", "-fleetprof-certificates"},
        "PodDisruptionBudget": {"-fleetprof-webhook"},
        "NetworkPolicy": {"-fleetprof-webhook", "-fleetprof-certificates"},
        "Role": {"-fleetprof-certificates"},
        "RoleBinding": {"-fleetprof-certificates"},
        "ClusterRole": {"-fleetprof-webhook", "-fleetprof-certificates"},
        "ClusterRoleBinding": {"-fleetprof-webhook", "-fleetprof-certificates"},
        "ValidatingAdmissionPolicy": {f"-fleetprof-{part}" for part in ("requester", "certificates", "pods")},
        "ValidatingAdmissionPolicyBinding": {f"-fleetprof-{part}" for part in ("requester", "certificates", "pods")},
        "MutatingWebhookConfiguration": {"-fleetprof"},
    },
    "no CRD": {
        "CustomResourceDefinition": {"-profilerequests.fleetprof.io", "-profilepolicies.fleetprof.io"},
    },
    "no policies": {
        "NetworkPolicy": {
            f"-fleetprof-{part}" for part in ("analyzer", "certificates", "operator", "release", "test", "webhook")
        },
    },
    "web UI": WEBUI,
    "web UI with an Ingress": {**WEBUI, "Ingress": {"+fleetprof-webui"}},
    "web UI and its Secrets": WEBUI,
    "monitored": {"ServiceMonitor": {"+fleetprof"}},
    "dashboards": {"ConfigMap": {f"+fleetprof-dashboard-{name}" for name in ("fleet", "fleetprof", "job")}},
    "rules": {"PrometheusRule": {"+fleetprof"}},
    "cert-manager": {
        **NO_KEEPER,
        "Issuer": {"+fleetprof-selfsigned", "+fleetprof-ca"},
        "Certificate": {"+fleetprof-ca", "+fleetprof-tls", "+fleetprof-webhook-tls"},
    },
    "cert-manager with an issuer": {**NO_KEEPER, "Certificate": {"+fleetprof-tls", "+fleetprof-webhook-tls"}},
    "accounts of others": {
        "ServiceAccount": {"-fleetprof-operator"},
        **{kind: names for kind, names in WEBUI.items() if kind != "ServiceAccount"},
    },
    "no rights": {
        "ClusterRole": {f"-fleetprof-{part}" for part in ("certificates", "editor", "operator", "viewer", "webhook")},
        "ClusterRoleBinding": {"-fleetprof-certificates", "-fleetprof-operator", "-fleetprof-webhook"},
        "Role": {"-fleetprof-certificates", "-fleetprof-operator-own", "-fleetprof-operator-lease", "-fleetprof-top"},
        "RoleBinding": {"-fleetprof-certificates", "-fleetprof-operator-own", "-fleetprof-operator-lease"},
        "ServiceAccount": {"-fleetprof-top"},
    },
}


@pytest.mark.parametrize("name", KINDS)
def test_a_switch_adds_and_takes_exactly_these_objects(name: str) -> None:
    def names(objects: Objects) -> set[tuple[str, str]]:
        return {(item["kind"], item["metadata"]["name"]) for item in objects.items}

    bare, found = names(render(S3)), names(render(VALUE_SETS[name]))
    expected = {(kind, name[1:]) for kind, changes in KINDS[name].items() for name in changes if name[0] == "+"}
    taken = {(kind, name[1:]) for kind, changes in KINDS[name].items() for name in changes if name[0] == "-"}
    assert (found - bare, bare - found) == (expected, taken)


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_object_is_labelled_and_says_its_namespace(name: str) -> None:
    for item in render(VALUE_SETS[name]).items:
        labels = item["metadata"]["labels"]
        where = f"{item['kind']} {item['metadata']['name']}"
        assert labels["app.kubernetes.io/name"] == "fleetprof", where
        assert labels["app.kubernetes.io/instance"] == "fleetprof", where
        assert labels["app.kubernetes.io/managed-by"] == "Helm", where
        assert {"app.kubernetes.io/component", "app.kubernetes.io/version", "helm.sh/chart"} <= labels.keys(), where
        # Tools that apply what `helm template` prints put each object where it says.
        assert ("namespace" in item["metadata"]) == (item["kind"] not in OF_THE_CLUSTER), where


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_selector_finds_its_pods_and_no_others(name: str) -> None:
    objects = render(VALUE_SETS[name])
    pods = {owner: template["metadata"]["labels"].items() for owner, template in objects.pods()}
    selectors = {}
    for item in objects.items:
        selector = item.get("spec", {}).get("selector", item.get("spec", {}).get("podSelector"))
        if selector and item["kind"] not in ("ServiceMonitor", "PersistentVolumeClaim"):
            selectors[f"{item['kind']} {item['metadata']['name']}"] = selector.get("matchLabels", selector)
    assert len(selectors) >= 4
    for where, selector in selectors.items():
        found = [owner for owner, labels in pods.items() if selector.items() <= labels]
        assert len(found) == 1, f"{where} finds {found}"


def test_the_operators_role_is_an_annotation_of_its_account() -> None:
    accounts = render(VALUE_SETS["S3 with roles"]).of_kind("ServiceAccount")
    assert {name: account["metadata"].get("annotations") for name, account in accounts.items()} == {
        "fleetprof-operator": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/writer"},
        "fleetprof-analyzer": None,
        "fleetprof-webhook": None,
        "fleetprof-certificates": None,
        "fleetprof-top": None,
    }


def test_the_bundled_store_s_image_comes_from_any_registry() -> None:
    values = (*VALUE_SETS["bundled store"], "store.bundled.image=mirror.example:5000/versity/versitygw:v1.8.0")
    deployments = render(values).of_kind("Deployment")
    images = {
        container["image"]
        for name, deployment in deployments.items()
        if "-store" in name
        for container in deployment["spec"]["template"]["spec"]["containers"]
    }
    assert images == {"mirror.example:5000/versity/versitygw:v1.8.0"}


def test_the_bundled_store_s_credentials_are_random_and_stay_with_its_data() -> None:
    def secret(name: str, *options: str, of: str = "fleetprof-store") -> dict[str, Any]:
        return render(VALUE_SETS[name], *options).one("Secret", of)

    one, other = secret("bundled store"), secret("bundled store", "--debug")
    assert one["data"] != other["data"]
    assert one["data"] != secret("bundled store", of="fleetprof-store-reader")["data"]
    assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    claim = render(VALUE_SETS["bundled store"]).one("PersistentVolumeClaim", "fleetprof-store")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in secret("bundled store without a volume")["metadata"]


@pytest.mark.parametrize("name", VALUE_SETS)
def test_what_is_rendered_twice_without_a_cluster_is_the_same(name: str) -> None:
    """As Argo CD does at each look. Of the bundled store the keys must have been named."""
    first, second = render(VALUE_SETS[name]), render(VALUE_SETS[name], "--debug")
    differing = {
        item["metadata"]["name"] for item, again in zip(first.items, second.items, strict=True) if item != again
    }
    makes_keys = any(value == "store.bundled.enabled=true" for value in VALUE_SETS[name]) and "Secret" not in name
    assert differing == ({"fleetprof-store", "fleetprof-store-reader"} if makes_keys else set())


def test_who_only_reads_the_bundled_store_has_keys_and_a_port_of_its_own() -> None:
    def of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        objects = render(VALUE_SETS[name])
        spec = objects.one("Deployment", "fleetprof-store")["spec"]["template"]["spec"]
        return {each["name"]: each for each in spec["containers"]}, objects.one("Service", "fleetprof-store")

    for name, secrets in (
        ("bundled store", ("fleetprof-store", "fleetprof-store-reader")),
        ("bundled store with Secrets", ("writer", "reader")),
    ):
        containers, service = of(name)
        assert "--readonly" in containers["reader"]["args"]
        assert "--readonly" not in containers["store"]["args"]
        for container, secret in zip(("store", "reader"), secrets, strict=True):
            references = [item["valueFrom"]["secretKeyRef"] for item in containers[container]["env"]]
            assert [each["name"] for each in references] == [secret, secret]
        assert service["metadata"]["annotations"] == {READER_ANNOTATION: secrets[1]}
        assert {port["port"] for port in service["spec"]["ports"]} == {7070, READER_PORT}
    containers, service = of("bundled store with one Secret")
    assert set(containers) == {"store"}
    assert "annotations" not in service["metadata"]


def test_the_certificates_secret_has_no_content_that_an_upgrade_could_put_back() -> None:
    for name in ("fleetprof-tls", "fleetprof-webhook-tls"):
        assert render().one("Secret", name).keys() == {"apiVersion", "kind", "metadata", "type"}


def test_the_authority_that_running_pods_trust_is_kept_when_the_release_goes() -> None:
    secrets = render().of_kind("Secret")
    kept = {name: "annotations" in secret["metadata"] for name, secret in secrets.items()}
    assert kept == {"fleetprof-tls": True, "fleetprof-webhook-tls": False}


def test_the_crds_are_kept_when_the_release_goes() -> None:
    crds = render().of_kind("CustomResourceDefinition")
    assert set(crds) == {"profilerequests.fleetprof.io", "profilepolicies.fleetprof.io"}
    for crd in crds.values():
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(("version", "there"), [("1.28.0", False), ("1.30.0", True), ("1.36.3", True)])
def test_an_older_api_server_is_given_no_field_that_it_does_not_know(version: str, there: bool) -> None:
    for crd in render(S3, f"--kube-version={version}").of_kind("CustomResourceDefinition").values():
        assert ("selectableFields" in crd["spec"]["versions"][0]) == there


def test_cert_manager_makes_the_secret_that_we_would_and_the_ca_reaches_the_webhook() -> None:
    own = render(VALUE_SETS["cert-manager"])
    for name, host in (("fleetprof-tls", "fleetprof-hub"), ("fleetprof-webhook-tls", "fleetprof-webhook")):
        certificate = own.one("Certificate", name)["spec"]
        assert certificate["secretName"] == name
        assert certificate["dnsNames"] == [f"{host}.{NAMESPACE}.svc"]
        assert certificate["issuerRef"] == {"name": "fleetprof-ca", "kind": "Issuer", "group": "cert-manager.io"}
    annotations = own.one("MutatingWebhookConfiguration", "fleetprof")["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/fleetprof-webhook-tls"}
    theirs = render(VALUE_SETS["cert-manager with an issuer"]).one("Certificate", "fleetprof-tls")["spec"]
    assert theirs["issuerRef"] == {"name": "ours", "kind": "ClusterIssuer", "group": "cert-manager.io"}


def test_the_release_hook_runs_before_the_operator_goes_and_leaves_nothing() -> None:
    job = render().one("Job", "fleetprof-release")
    assert job["metadata"]["annotations"] == {
        "helm.sh/hook": "pre-delete",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    assert 0 < job["spec"]["activeDeadlineSeconds"] < 300  # Helm waits five minutes by default
    spec = job["spec"]["template"]["spec"]
    assert spec["containers"][0]["command"] == ["fleetprof-operator", "release"]
    assert spec["serviceAccountName"] == "fleetprof-operator"


def test_helm_test_runs_the_operator_s_own_check() -> None:
    job = render().one("Job", "fleetprof-test")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["fleetprof-operator", "check"]
    deployment = render().one("Deployment", "fleetprof-operator")["spec"]["template"]["spec"]
    wanted = {item["name"]: item for item in deployment["containers"][0]["env"]}
    assert [wanted[item["name"]] for item in container["env"]] == container["env"]


@pytest.mark.parametrize(
    ("release", "values", "expected"),
    [
        ("fleetprof", (), "fleetprof"),
        ("my-fleetprof", (), "my-fleetprof"),
        ("ml", (), "ml-fleetprof"),
        ("ml", ("fullnameOverride=profiler",), "profiler"),
        ("a" * 53, (), "a" * 40),
    ],
)
def test_every_name_begins_with_the_release_s(release: str, values: tuple[str, ...], expected: str) -> None:
    objects = render((*S3, *values), release=release)
    for item in objects.items:
        # The Lease has one name for all releases, so that there cannot be two.
        if item["kind"] not in ("CustomResourceDefinition", "Lease"):
            assert re.fullmatch(rf"{expected}(-[a-z-]+)?", item["metadata"]["name"]), item["metadata"]["name"]
            assert len(item["metadata"]["name"]) <= 63


def test_prometheus_is_sent_to_the_metrics_of_operator_webhook_and_web_ui() -> None:
    objects = render((*OIDC, *VALUE_SETS["monitored"]))
    monitor = objects.one("ServiceMonitor", "fleetprof")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    selector = monitor["spec"]["selector"]
    (endpoint,) = monitor["spec"]["endpoints"]
    ports = {
        name: port["port"]
        for name, service in objects.of_kind("Service").items()
        if selector["matchLabels"].items() <= service["metadata"]["labels"].items()
        and matches({"matchExpressions": selector["matchExpressions"]}, service["metadata"]["labels"])
        for port in service["spec"]["ports"]
        if port["name"] == endpoint["port"]
    }
    assert ports == {"fleetprof-metrics": 8080, "fleetprof-webhook": 8080, "fleetprof-webui": 8082}


def test_an_ingress_leads_the_host_of_the_address_to_the_pages() -> None:
    ingress = render(VALUE_SETS["web UI with an Ingress"]).one("Ingress", "fleetprof-webui")
    assert ingress["metadata"]["annotations"] == {"cert-manager.io/cluster-issuer": "ours"}
    (rule,) = ingress["spec"]["rules"]
    assert (ingress["spec"]["ingressClassName"], rule["host"]) == ("nginx", "ui.example")
    assert ingress["spec"]["tls"] == [{"hosts": ["ui.example"], "secretName": "ui-tls"}]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "fleetprof-webui", "port": {"name": "pages"}}
